// bench_synthesis finds plans for 20 topologies, 10 of them random, and prints how close they come to what
// the links allow.
//
//   bench_synthesis [--limit SECONDS] [--bytes N] [--collectives LIST] [topology ...] >table.md
//
// The tables of docs/synthesis.md are its output. A random topology is named random:GPUS/SEED.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "chorale/synthesize.hpp"
#include "chorale/usage_error.hpp"
#include "tests/unit/topology/random_topology.hpp"

namespace {

using namespace chorale;

const std::vector<std::string> all{"switch:2",   "switch:8",   "switch:16",   "ring:4",      "ring:8",
                                   "mesh:4",     "mesh:8",     "pcie:8",      "hosts:2x4/4", "hosts:2x8/8",
                                   "random:3/1", "random:4/2", "random:5/3",  "random:6/4",  "random:7/5",
                                   "random:8/6", "random:9/7", "random:10/8", "random:12/9", "random:16/10"};

Topology topology_of(const std::string& name) {
  unsigned gpus = 0;
  unsigned long seed = 0;
  if (std::sscanf(name.c_str(), "random:%u/%lu", &gpus, &seed) == 2) return test::random_topology(gpus, seed);
  return load_topology(name);
}

/// Prints the row of one topology and collective. Returns the better of the two ratios.
double print_row(const std::string& name, SynthesisCall call, const Machine& machine) {
  const Topology topology = topology_of(name);
  call.bytes -= call.bytes % (topology.gpus().size() * dtype_size(call.dtype));
  const auto begin = std::chrono::steady_clock::now();
  try {
    const Synthesis found = synthesize(call, machine, topology);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const double to_class = found.class_ns > 0 ? found.ns / found.class_ns : 0;
    fmt::print("| {} | {} | {:.0f} | {:.3f} | {} | {:.0f} | {} |\n", name, call.collective, found.ns / 1e3,
               found.ns / found.cut_ns, to_class > 0 ? fmt::format("{:.3f}", to_class) : "-", seconds,
               found.trials.front().name);
    std::fflush(stdout);
    return to_class > 0 ? to_class : found.ns / found.cut_ns;
  } catch (const UsageError& error) {
    fmt::print("| {} | {} | {} |\n", name, call.collective, error.what());
    return 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Finds plans for many topologies."};
  std::vector<std::string> topologies = all;
  std::vector<std::string> collectives{"allgather", "allreduce", "reducescatter", "alltoall", "broadcast"};
  SynthesisCall call{.collective = "", .bytes = uint64_t{1} << 30};
  app.add_option("topologies", topologies, "Names of topologies; default: 20 of them");
  app.add_option("--collectives", collectives, "Collectives; default: five")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--bytes", call.bytes, "Size of the message; default 1 GiB");
  app.add_option("--limit", call.seconds, "Seconds for each plan; default 60");
  CLI11_PARSE(app, argc, argv);
  const Machine machine = load_machine(CHORALE_SOURCE_DIR "/plans/machines/nvidia_h200.json");
  fmt::print("| topology | collective | us | to all plans | to the class | s | plan |\n");
  fmt::print("| :-- | :-- | --: | --: | --: | --: | :-- |\n");
  std::vector<double> ratios;
  for (const std::string& name : topologies) {
    for (const std::string& collective : collectives) {
      call.collective = collective;
      ratios.push_back(print_row(name, call, machine));
    }
  }
  const auto close =
      std::count_if(ratios.begin(), ratios.end(), [](double ratio) { return ratio > 0 && ratio <= 1.05; });
  fmt::print("\nWithin 5 % of the bound of their class: {} of {}\n", close, ratios.size());
}
