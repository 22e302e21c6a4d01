// Measures how long proofs take for three groups of plans: every shipped algorithm at 8 ranks, beside its
// compilation; the shipped plans of 8 ranks, which have up to 128 thread blocks each; and a ring all-reduce
// of growing size. Prints the table of docs/check-time.md, and exits with 1 if it misses a goal.
//
//   bench_check [--most-ranks N] [--commit TEXT]

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chorale/dsl.hpp>
#include <chorale/json.hpp>
#include <chorale/proof.hpp>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <stdexcept>

#include "bench/check/ring.hpp"
#include "bench/common/subprocess.hpp"
#include "tools/bench/machine.hpp"

namespace {

using chorale::Plan;
using chorale::bench::count_ops, chorale::bench::cpu_seconds, chorale::bench::measure_in_subprocess;

constexpr double most_small_seconds = 5e-3;  ///< the goal for a plan of 8 ranks, in seconds
constexpr double most_ring_seconds = 8, most_ring_bytes = 1.5e9, least_rate = 3e6;
constexpr uint32_t ring_goal_ranks = 1024;
constexpr const char* shipped_folder = CHORALE_SOURCE_DIR "/plans/shipped";

constexpr const char* introduction = R"(# Proof times

This page says how long Chorale needs to prove a plan. `bench_check --most-ranks 1024` writes it. A proof means all proofs of
[proof.md](proof.md). Times are CPU seconds of one core, on a machine that others used at the same time.

- *ops* are the operations of the plan, and *ops/s* counts each operation once.
- *launches* are executed one after the other, because the proof of replay needs them.
- *by compile* is the time of the proof divided by the time to compile the plan.
- Memory is the peak of the process, with the plan.

The goals are 5 ms for a plan of 8 ranks, and 8 s, 1.5 GB and at least 3 million operations per second for the ring of 1024 ranks.

)";

struct Sample {
  double build = 0, prove = 0;  ///< seconds
  uint64_t ops = 0, launches = 0, peak_bytes = 0;
  bool proved = false;
};

/// Builds and proves a plan in a separate process.
Sample measure(const std::function<Plan()>& build, int times, bool facts = false) {
  return measure_in_subprocess("a proof", [&] {
    Sample sample;
    double start = cpu_seconds();
    const Plan plan = build();
    sample.build = cpu_seconds() - start;
    sample.ops = count_ops(plan);
    sample.prove = 1e9;
    for (int time = 0; time < times; ++time) {
      start = cpu_seconds();
      const chorale::Proof proof = chorale::prove_plan(plan, {}, facts);
      sample.prove = std::min(sample.prove, cpu_seconds() - start);
      sample.proved = proof.findings.empty();
      sample.launches = proof.facts.launches;
      if (!sample.proved) std::fprintf(stderr, "%s", chorale::render(plan, proof.diagnostics()).c_str());
    }
    return sample;
  });
}

const char* missed(bool ok) { return ok ? "" : " (missed)"; }

bool measure_shipped() {
  std::printf("\n## Shipped algorithms, 8 ranks\n\n");
  std::printf("| algorithm | ops | launches | compile ms | proof ms | by compile | ops/s |\n");
  std::printf("| --- | --: | --: | --: | --: | --: | --: |\n");
  bool good = true;
  for (const chorale::dsl::RegisteredProgram& program : chorale::dsl::programs()) {
    const auto build = [&] {
      chorale::dsl::Program built = chorale::dsl::build(program.name, {{"ranks", "8"}});
      chorale::CompileOptions options = built.compile_options();
      options.allow.emplace_back(chorale::all_proofs);
      chorale::dsl::Compiled compiled = std::move(built).compile(options);
      if (!compiled.ok()) throw std::runtime_error(program.name + " is not compiled");
      return std::move(compiled.plan);
    };
    const Sample sample = measure(build, 20);
    const bool quick = sample.prove <= most_small_seconds && sample.proved;
    good &= quick;
    std::printf("| %s | %llu | %llu | %.2f | %.2f%s | %.2f | %.2e |\n", program.name.c_str(),
                static_cast<unsigned long long>(sample.ops), static_cast<unsigned long long>(sample.launches),
                sample.build * 1e3, sample.prove * 1e3, missed(quick), sample.prove / sample.build,
                double(sample.ops) / sample.prove);
    std::fflush(stdout);
  }
  return good;
}

/// Lists the names of the shipped plans, without ".json".
std::vector<std::string> list_shipped_plans(uint32_t ranks) {
  const std::string end = "_" + std::to_string(ranks);
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(shipped_folder)) {
    if (file.path().stem().string().ends_with(end)) names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool measure_shipped_plans() {
  std::printf(
      "\n## Shipped plans, 8 ranks\n\n*with certificate* is the time for a certificate (`--certify`), which "
      "proves "
      "every "
      "copy of a thread block.\n\n");
  std::printf("| plan | blocks per rank | ops | launches | proof ms | with certificate ms | ops/s |\n");
  std::printf("| --- | --: | --: | --: | --: | --: | --: |\n");
  bool good = true;
  for (const std::string& name : list_shipped_plans(8)) {
    const auto build = [&] { return chorale::load(std::string(shipped_folder) + "/" + name + ".json"); };
    const Sample sample = measure(build, 20), whole = measure(build, 3, true);
    const bool quick = sample.prove <= most_small_seconds && sample.proved;
    good &= quick;
    std::printf("| %s | %zu | %llu | %llu | %.2f%s | %.2f | %.2e |\n", name.c_str(),
                build().gpus[0].threadblocks.size(), static_cast<unsigned long long>(sample.ops),
                static_cast<unsigned long long>(sample.launches), sample.prove * 1e3, missed(quick),
                whole.prove * 1e3, double(sample.ops) / sample.prove);
    std::fflush(stdout);
  }
  return good;
}

bool measure_ring(uint32_t most_ranks) {
  std::printf("\n## Ring all-reduce\n\n| ranks | ops | launches | proof s | ops/s | ns per op | peak MB |\n");
  std::printf("| --: | --: | --: | --: | --: | --: | --: |\n");
  bool good = true;
  for (uint32_t ranks = 64; ranks <= most_ranks; ranks *= 2) {
    const Sample sample = measure([&] { return chorale::bench::ring_allreduce(ranks); }, ranks < 512 ? 5 : 3);
    const double rate = double(sample.ops) / sample.prove;
    const bool goal = ranks == ring_goal_ranks;
    const bool quick = sample.proved && (!goal || sample.prove <= most_ring_seconds);
    const bool small = !goal || double(sample.peak_bytes) <= most_ring_bytes;
    const bool fast = !goal || rate * double(sample.launches) >= least_rate;  // in executed operations
    good &= quick && small && fast;
    std::printf("| %u | %llu | %llu | %.3f%s | %.2e%s | %.0f | %.0f%s |\n", ranks,
                static_cast<unsigned long long>(sample.ops), static_cast<unsigned long long>(sample.launches),
                sample.prove, missed(quick), rate, missed(fast), 1e9 / rate, double(sample.peak_bytes) * 1e-6,
                missed(small));
    std::fflush(stdout);
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures CPU time and memory of proofs");
  std::string commit = "unknown";
  uint32_t most_ranks = 256;
  app.add_option("--most-ranks", most_ranks, "The largest ring");
  app.add_option("--commit", commit, "The commit that was measured, for the table");
  CLI11_PARSE(app, argc, argv);
  try {
    std::printf("%s| machine | value |\n| --- | --- |\n", introduction);
    for (const auto& [name, value] : chorale::tools::machine_facts({}, commit))
      std::printf("| %s | %s |\n", name.c_str(), value.c_str());
    const bool small = measure_shipped(), plans = measure_shipped_plans();
    return measure_ring(most_ranks) && small && plans ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
