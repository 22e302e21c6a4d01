// Compares fused kernels of the device library with NCCL plus a separate kernel for the same work, on several
// GPUs, in one run. See ../README.md.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "bench/fused/harness.hpp"
#include "tools/command.hpp"

namespace chorale::fused_bench {
namespace {

struct Options {
  int ranks = 2;
  std::string sizes = "1K:16M:4", only;
  bool markdown = false, all = false;
};

/// Prints a line for each size.
/// \returns true if our kernel was faster at all sizes
bool compare(const Options& options, Bench& bench, World& world, Workload& workload, tools::Nccl* nccl) {
  const bool speaks = world.rank() == 0;
  if (speaks) fmt::print("\n{}, {} GPUs\n", workload.name(), world.ranks());
  if (speaks && options.markdown) {
    fmt::print(
        "\n| bytes | shape | us | form | NCCL and a kernel, us | ratio |\n"
        "| --- | --- | --- | --- | --- | --- |\n");
  } else if (speaks) {
    fmt::print("{:>8} {:>10} {:>10} {:>7}  {}\n", "bytes", "us", "NCCL us", "ratio", "form");
  }
  bool met = true;
  for (const uint64_t bytes : tools::parse_sizes(options.sizes)) {
    workload.prepare(bytes);
    double best = 1e30;
    std::string form = "none";
    for (const Candidate& candidate : workload.ours()) {
      double us = 0;
      try {
        us = bench.time(workload, candidate);
      } catch (const UsageError& error) {  // thrown on all ranks, before anything runs
        if (speaks) fmt::print(stderr, "{}: {}\n", candidate.name, error.what());
        continue;
      }
      if (options.all && speaks && !options.markdown) {
        fmt::print("{:>8} {:>10.2f} {:>10} {:>7}    {}\n", "", us, "", "", candidate.name);
        std::fflush(stdout);
      }
      if (us >= best) continue;
      best = us;
      form = candidate.name;
    }
    const double theirs = nccl ? bench.time(workload, workload.by_nccl(*nccl)) : 0;
    if (nccl) met &= best < theirs;
    if (!speaks) continue;
    const std::string size = tools::format_bytes(bytes);
    if (options.markdown) {
      fmt::print("| {} | {} | {:.2f} | {} | {:.2f} | {:.2f} |\n", size, workload.shape(), best, form, theirs,
                 theirs / best);
    } else {
      fmt::print("{:>8} {:>10.2f} {:>10.2f} {:>7.2f}  {}\n", size, best, theirs, theirs / best, form);
    }
    std::fflush(stdout);
  }
  return met;
}

int run_rank(const Options& options, int rank, const std::string& address) {
  check(cudaSetDevice(rank), "cudaSetDevice");
  JoinOptions join;
  join.timeout = std::chrono::seconds(15);
  World world = World::join(address, rank, options.ranks, join);
  try {
    std::string why;
    const auto nccl = tools::Nccl::join(world, why);
    const auto transport = direct_rendezvous(world, links());
    if (rank == 0) {
      fmt::print("calls in CUDA graphs of 50, the slowest rank; {}\n",
                 nccl ? "NCCL " + nccl->version() : "without NCCL: " + why);
    }
    Bench bench(world);
    bool met = nccl != nullptr;
    for (const auto make : {transpose_all_to_all, rms_norm_all_reduce, rms_norm_to_codes,
                            quantised_all_reduce, uneven_all_to_all, expert_dispatch, expert_exchange,
                            hooked_all_reduce, hooked_all_gather, hooked_reduce_scatter, hooked_all_to_all}) {
      const auto workload = make(world, *transport);
      if (workload->name().find(options.only) == std::string::npos) continue;
      met &= compare(options, bench, world, *workload, nccl.get());
    }
    world.barrier();
    return met ? 0 : 1;
  } catch (const std::exception& error) {
    world.abort(error.what());  // the other ranks may wait for this one
    throw;
  }
}

}  // namespace
}  // namespace chorale::fused_bench

int main(int argc, char** argv) {
  using namespace chorale;
  fused_bench::Options options;
  CLI::App app(
      "Fused kernels beside NCCL and a separate kernel. Exit status: 0 faster at every size, 1 slower at "
      "some size, 2 a result is wrong, 3 it did not run.");
  app.add_option("ranks", options.ranks, "number of GPUs, with one process each")->check(CLI::Range(2, 8));
  app.add_option("--sizes", options.sizes, "bytes of a rank's input: 1K,4M or 1K:16M or 1K:16M:4");
  app.add_option("--only", options.only, "a part of the name of one of them");
  app.add_flag("--markdown", options.markdown, "print tables in Markdown");
  app.add_flag("--all", options.all, "show every form that is tried");
  CLI11_PARSE(app, argc, argv);
  tools::quieten_nccl();
  return bench::run_in_processes(options.ranks, "bench_fused", [&](int rank, const std::string& address) {
    return fused_bench::run_rank(options, rank, address);
  });
}
