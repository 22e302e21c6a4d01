// Compares matrix products that overlap with transfers against NCCL and cuBLAS one after the other, on
// several GPUs, in one run. See ../README.md.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "bench/overlap/torch_fused.hpp"
#include "bench/overlap/workloads.hpp"
#include "chorale/json_text.hpp"
#include "tools/bench/machine.hpp"
#include "tools/command.hpp"

namespace chorale::overlap {
namespace {

struct Options {
  int ranks = 2;
  std::string only, form, json, torch, torch_script = CHORALE_TORCH_FUSED;
  std::vector<size_t> shapes;
  std::vector<uint64_t> own_shape;  ///< M, K, N; empty: those of the workloads
  std::vector<TorchTime> torch_times;
  Timing timing;
  bool eager = false;
  tools::Facts machine;
};

/// Describes one kind of workload, and its goals.
struct Kind {
  const char* name;
  std::unique_ptr<Judged> (*make)(World&, tools::Nccl*, Shape, const std::string&);
  std::vector<Shape> shapes;
  double least_of_ideal;  ///< the goal for the first `held` shapes
  double least_speedup;
  size_t held;
  TorchOperation torch;
  double least_beside_torch;  ///< the goal for all shapes, if PyTorch is timed
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {{"all-gather and product",
                                         allgather_then_matmul,
                                         {{32768, 32768, 1024},
                                          {8192, 8192, 8192},
                                          {16384, 8192, 3584},
                                          {8192, 8192, 3584},
                                          {4096, 8192, 3584}},
                                         0.90,
                                         0,
                                         3,
                                         TorchOperation::gather,
                                         0.95},
                                        {"product and reduce-scatter",
                                         matmul_then_reduce_scatter,
                                         {{8192, 28672, 8192}, {32768, 28672, 8192}},
                                         0,
                                         1.25,
                                         2,
                                         TorchOperation::scatter,
                                         0}};
  return all;
}

/// Calls f(kind, index of the shape) for all shapes that the options name.
template <class F>
void each_wanted(const Options& options, const F& f) {
  for (Kind kind : kinds()) {
    if (!options.own_shape.empty()) {
      kind.shapes = {{options.own_shape[0], options.own_shape[1], options.own_shape[2]}};
      kind.held = 0;
      kind.least_beside_torch = 0;
    }
    if (std::string(kind.name).find(options.only) == std::string::npos) continue;
    for (size_t which = 0; which < kind.shapes.size(); ++which) {
      const auto& shapes = options.shapes;
      if (shapes.empty() || std::find(shapes.begin(), shapes.end(), which) != shapes.end()) f(kind, which);
    }
  }
}

/// Times PyTorch's operations. Call it before the ranks use the GPUs.
std::vector<TorchTime> time_torch(const Options& options) {
  if (options.torch.empty()) return {};
  std::vector<TorchTime> wanted;
  each_wanted(options, [&](const Kind& kind, size_t which) {
    wanted.push_back({kind.torch, kind.shapes[which], 0});
  });
  return time_torch(options.torch, options.torch_script, options.ranks, wanted);
}

std::optional<double> torch_ms(const Options& options, const Kind& kind, Shape shape) {
  for (const TorchTime& one : options.torch_times)
    if (one.operation == kind.torch && one.shape == shape) return one.ms;
  return {};
}

void print(const Kind& kind, Shape shape, const Judgement& all, int ranks) {
  fmt::print(
      "\n{}, {}, bf16, {} GPUs\n\n| | ms | of ideal | of bound | beside serial |{}\n| --- | --- | --- | --- "
      "| "
      "--- |{}\n",
      kind.name, shape.text(), ranks, all.torch ? " beside PyTorch |" : "", all.torch ? " --- |" : "");
  const auto row = [&](const std::string& name, std::optional<double> ms) {
    if (!ms || *ms <= 0) return;
    fmt::print("| {} | {:.3f} | {:.2f} | {:.2f} | {} |{}\n", name, *ms, all.ideal() / *ms,
               all.bound(ranks) / *ms, all.serial ? fmt::format("{:.2f}", *all.serial / *ms) : "-",
               all.torch ? fmt::format(" {:.2f} |", *all.torch / *ms) : "");
  };
  row("product alone", all.product);
  row("NCCL alone", all.collective);
  row("NCCL and cuBLAS, one after the other", all.serial);
  row("PyTorch's fused symmetric-memory operation", all.torch);
  row("ideal: the larger of the two alone", all.ideal());
  row("transfers alone, by copy engines", all.transfers);
  row("products of the slices alone", all.slices);
  row("sum alone", all.sum);
  row("bound: max((D-1)x + g, D g), and the sum", all.bound(ranks));
  for (const FormTime& form : all.forms) row(form.name, form.ms);
  std::fflush(stdout);
}

nlohmann::ordered_json json_of(const Kind& kind, Shape shape, const Judgement& all, int ranks) {
  nlohmann::ordered_json one = {{"workload", kind.name}, {"ranks", ranks}, {"M", shape.m},
                                {"K", shape.k},          {"N", shape.n},   {"dtype", "bf16"}};
  one["ms"] = {{"product", all.product}, {"transfers", all.transfers}, {"slices", all.slices},
               {"sum", all.sum},         {"ideal", all.ideal()},       {"bound", all.bound(ranks)}};
  if (all.collective) one["ms"]["nccl"] = *all.collective;
  if (all.serial) one["ms"]["serial"] = *all.serial;
  if (all.torch) one["ms"]["torch_fused"] = *all.torch;
  one["forms"] = nlohmann::ordered_json::array();
  for (const FormTime& form : all.forms) {
    nlohmann::ordered_json row = {{"name", form.name},
                                  {"ms", form.ms},
                                  {"of_ideal", all.ideal() / form.ms},
                                  {"of_bound", all.bound(ranks) / form.ms}};
    if (all.serial) row["beside_serial"] = *all.serial / form.ms;
    if (all.torch) row["beside_torch"] = *all.torch / form.ms;
    one["forms"].push_back(std::move(row));
  }
  return one;
}

bool met(const Kind& kind, size_t which, const Judgement& all) {
  if (all.torch && (all.forms.empty() || *all.torch / all.forms[0].ms < kind.least_beside_torch))
    return false;
  if (which >= kind.held) return true;
  if (all.forms.empty() || !all.serial) return false;
  const double best = all.forms[0].ms;
  return all.ideal() / best >= kind.least_of_ideal && *all.serial / best >= kind.least_speedup;
}

int run_rank(const Options& options, int rank, const std::string& address) {
  check(cudaSetDevice(rank), "cudaSetDevice");
  World world = World::join(address, rank, options.ranks, {.timeout = std::chrono::seconds(30)});
  try {
    std::string why;
    const auto nccl = tools::Nccl::join(world, why);
    nlohmann::ordered_json report;
    if (rank == 0) {
      const std::string peer = nccl ? "NCCL " + nccl->version() : "without NCCL: " + why;
      for (const auto& [name, value] : options.machine) report["machine"][name] = value;
      report["machine"]["peer"] = peer;
      report["timing"] = {{"calls", options.timing.calls},
                          {"rounds", options.timing.rounds},
                          {"graphs", options.timing.graphs}};
      fmt::print("{} calls {}, the slowest rank, the median of {} rounds in turns; {}\n",
                 options.timing.calls, options.timing.graphs ? "in a CUDA graph" : "one by one",
                 options.timing.rounds, peer);
    }
    bool all_met = true;
    each_wanted(options, [&](const Kind& kind, size_t which) {
      const Shape shape = kind.shapes[which];
      const auto workload = kind.make(world, nccl.get(), shape, options.form);
      Bench(world, options.timing).run(*workload);
      Judgement judgement = workload->judgement();
      judgement.torch = torch_ms(options, kind, shape);
      all_met &= met(kind, which, judgement);
      // Peers must unmap memory before it is freed, so the candidates go first.
      workload->candidates().clear();
      world.barrier();
      if (rank != 0) return;
      print(kind, shape, judgement, options.ranks);
      report["results"].push_back(json_of(kind, shape, judgement, options.ranks));
      if (!options.json.empty()) tools::write_output(options.json, json_text(report, 2) + '\n');
    });
    world.barrier();
    return all_met ? 0 : 1;
  } catch (const std::exception& error) {
    world.abort(error.what());  // the other ranks may wait for this one
    throw;
  }
}

}  // namespace
}  // namespace chorale::overlap

int main(int argc, char** argv) {
  using namespace chorale;
  overlap::Options options;
  CLI::App app(
      "Overlapped products beside NCCL and cuBLAS. Exit status: 0 the goals are met, 1 a goal is missed, 2 a "
      "result is wrong, 3 it did not run.");
  app.add_option("ranks", options.ranks, "number of GPUs, with one process each")->check(CLI::Range(2, 8));
  app.add_option("--only", options.only, "a part of the name of a workload: all-gather, reduce-scatter");
  app.add_option("--shapes", options.shapes, "the indices of a workload's shapes, from 0; default all");
  app.add_option("--shape", options.own_shape, "M,K,N: this shape instead, which has no goal")
      ->delimiter(',')
      ->expected(3)
      ->check(CLI::PositiveNumber);
  app.add_option("--form", options.form, "a part of the names of forms: rotated, pool, ce_get");
  app.add_option("--calls", options.timing.calls, "calls in a round; default 10")->check(CLI::Range(1, 1000));
  app.add_option("--rounds", options.timing.rounds, "default 5")->check(CLI::Range(1, 1000));
  app.add_flag("--eager", options.eager, "enqueue calls one by one, not as a CUDA graph");
  app.add_option("--torch", options.torch,
                 "a Python with PyTorch, to time its fused operations beside ours: python3");
  app.add_option("--torch-script", options.torch_script,
                 "the path of torch_fused.py, if it is not in the source folder of this build");
  app.add_option("--json", options.json, "write the results to this file, too");
  CLI11_PARSE(app, argc, argv);
  options.timing.graphs = !options.eager;
  tools::quieten_nccl();
  // Each stream of a schedule gets its own hardware queue, so that no stream waits for another.
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  try {
    const tools::RankGpus gpus = tools::find_rank_gpus();
    tools::need_gpus(gpus, unsigned(options.ranks), false);
    options.machine = tools::machine_facts(gpus, "");
  } catch (const tools::Failure& failure) {
    fmt::print(stderr, "{}\n", failure.what());
    return 3;
  }
  try {
    options.torch_times = time_torch(options);
  } catch (const bench::Wrong& error) {
    fmt::print(stderr, "{}\n", error.what());
    return bench::result_wrong;
  }
  return bench::run_in_processes(options.ranks, "bench_overlap", [&](int rank, const std::string& address) {
    return overlap::run_rank(options, rank, address);
  });
}
