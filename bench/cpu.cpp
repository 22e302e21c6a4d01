// Times the CPU backend with all ranks in one process: calls of all-reduce, the binding of a plan, and the
// memory of a bound plan. To compare two commits, run their programs in turns on one machine; see README.md.

#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chorale/dsl.hpp>
#include <chorale/executor.hpp>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "bench/common/cpu_allreduce.hpp"

namespace {

using namespace chorale::bench;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Returns the memory that the process holds, in bytes.
uint64_t resident_bytes() {
  uint64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * uint64_t(sysconf(_SC_PAGESIZE));
}

struct Measured {
  double call = 0, bind = 0;  ///< seconds, on the slowest rank
  uint64_t bound_bytes = 0;   ///< memory that the process gained with the first binding and call
  size_t wrong = 0;           ///< wrong elements on all ranks
};

Measured measure(const chorale::Plan& plan, int ranks, uint64_t bytes, double budget, int bindings) {
  const size_t elements = bytes / sizeof(float);
  std::vector<double> calls_took(size_t(ranks), 0);
  std::vector<std::vector<double>> binds(size_t(ranks), std::vector<double>(size_t(bindings), 0));
  Measured measured;
  std::mutex mutex;
  int calls = 2;
  chorale::run_local(ranks, [&](chorale::World& world) {
    const size_t rank = size_t(world.rank());
    std::vector<float> in(elements), out(elements);
    fill(in, int(rank));
    const chorale::Arguments arguments{.in = in.data(), .out = out.data(), .bytes = bytes};
    world.barrier();
    if (rank == 0) malloc_trim(0);
    world.barrier();
    const uint64_t before = resident_bytes();
    world.barrier();
    chorale::Executor executor(world);
    executor.execute(plan, arguments);
    world.barrier();
    if (rank == 0) {
      malloc_trim(0);  // what the binding has freed is not the plan's
      measured.bound_bytes = resident_bytes() - std::min(before, resident_bytes());
    }
    world.barrier();
    for (int number = 0; number < bindings; ++number) {
      chorale::Executor fresh(world);
      world.barrier();
      const auto start = Clock::now();
      fresh.prepare(plan, arguments);
      binds[rank][size_t(number)] = seconds_since(start);
      world.barrier();
    }
    for (const bool warm : {false, true}) {
      world.barrier();
      const auto start = Clock::now();
      for (int call = 0; call < calls; ++call) executor.execute(plan, arguments);
      calls_took[rank] = seconds_since(start) / calls;
      world.barrier();
      const double slowest = *std::max_element(calls_took.begin(), calls_took.end());
      if (rank == 0 && !warm) calls = calls_in(budget, slowest);
    }
    const size_t wrong = wrong_elements(out, ranks);
    const std::lock_guard lock(mutex);
    measured.wrong += wrong;
  });
  measured.call = *std::max_element(calls_took.begin(), calls_took.end());
  std::vector<double> slowest;
  for (int number = 0; number < bindings; ++number) {
    double most = 0;
    for (const std::vector<double>& of_rank : binds) most = std::max(most, of_rank[size_t(number)]);
    slowest.push_back(most);
  }
  measured.bind = median(slowest);
  return measured;
}

}  // namespace

int main(int argc, char** argv) {
  int ranks = 8, bindings = 9;
  double budget = 0.3;
  std::vector<std::string> names = {"allreduce_all_pairs", "allreduce_ring"};
  std::vector<uint64_t> sizes = {1 << 10, 16 << 10, 256 << 10, 4 << 20, 64 << 20};
  CLI::App app{"Times calls and bindings of all-reduce plans on the CPU, with ranks that are threads."};
  app.add_option("--ranks", ranks, "number of ranks")->capture_default_str()->check(CLI::Range(2, 64));
  app.add_option("--bindings", bindings, "bindings per size")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  app.add_option("--seconds", budget, "time per size")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--algorithms", names, "shipped all-reduces")->capture_default_str();
  app.add_option("--sizes", sizes, "bytes of a message")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  mallopt(M_MMAP_THRESHOLD, 64 << 10);  // large blocks that are freed leave the process at once
  bool right = true;
  std::printf("algorithm\tbytes\tcall us\tbind us\tbound KiB\n");
  for (const std::string& name : names) {
    const chorale::Plan plan = chorale::dsl::build(name, {{"ranks", std::to_string(ranks)}}).compile().plan;
    for (const uint64_t bytes : sizes) {
      const Measured of = measure(plan, ranks, bytes, budget, bindings);
      std::printf("%s\t%llu\t%.1f\t%.1f\t%llu\n", name.c_str(), static_cast<unsigned long long>(bytes),
                  of.call * 1e6, of.bind * 1e6, static_cast<unsigned long long>(of.bound_bytes / 1024));
      std::fflush(stdout);
      if (of.wrong != 0) std::fprintf(stderr, "%s: %zu elements are wrong\n", name.c_str(), of.wrong);
      right = right && of.wrong == 0;
    }
  }
  return right ? 0 : 2;
}
