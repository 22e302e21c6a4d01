// Checks for `chorale doctor SCHEDULE` that this machine has what the streams of a host schedule need.

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "chorale/collective.hpp"
#include "chorale/schedule/concrete.hpp"
#include "tools/command.hpp"
#include "tools/doctor/examination.hpp"

namespace chorale::tools {
namespace {

using schedule::StepKind;

void compare_calls(Examination& found, const schedule::Concrete& made) {
  std::set<std::string> called, applications;
  bool multiplies = false;
  for (const auto& steps : made.steps) {
    for (const schedule::Step& step : steps) {
      if (step.kind != StepKind::call) continue;
      const bool product = step.name == "matmul" || step.name == "linear";
      const bool other =
          step.name == "add" || step.name == "sum" || step.name == "cast" || step.name == "zero";
      multiplies |= product;
      called.insert(step.name);
      if (!product && !other) applications.insert(step.name);
    }
  }
  if (called.empty()) return found.pass("functions", "none");
  const std::string names = fmt::format("{}", fmt::join(called, ", "));
  if (multiplies) {
    void* const cublas = ::dlopen("libcublas.so", RTLD_LAZY | RTLD_LOCAL);
    void* const numbered = cublas ? cublas : ::dlopen("libcublas.so.13", RTLD_LAZY | RTLD_LOCAL);
    found.judge(numbered, "functions",
                names + (numbered ? "; cuBLAS can be loaded"
                                  : "; libcublas.so cannot be loaded, which multiplies on GPUs"),
                "install cuBLAS and put its folder into LD_LIBRARY_PATH, or register functions of your own");
  } else {
    found.pass("functions", names);
  }
  if (!applications.empty()) found.more(fmt::format("of the application: {}", fmt::join(applications, ", ")));
}

void compare_transfers(Examination& found, const GpusFound& gpus, const schedule::Concrete& made) {
  std::set<std::pair<uint32_t, uint32_t>> pairs;
  for (uint32_t rank = 0; rank < made.ranks; ++rank) {
    for (const schedule::Step& step : made.steps[rank]) {
      if (step.kind == StepKind::put || step.kind == StepKind::get) pairs.emplace(rank, step.peer);
      // For these transfers each end writes counters at the other end.
      for (const schedule::ConcreteTransfer& one : step.transfers)
        if (one.peer != rank) pairs.emplace(rank, one.peer);
    }
  }
  std::vector<std::string> apart;
  const size_t here = gpus.gpus.size();
  for (const auto& [rank, peer] : pairs)
    if (rank < here && peer < here && !gpus.reaches[rank][peer])
      apart.push_back(fmt::format("{} to {}", rank, peer));
  const std::string text = fmt::format("between {}", count(pairs.size(), "pair"));
  if (here == 0) return found.note("transfers", text);
  if (apart.empty()) return found.pass("transfers", text);
  found.fail("transfers", fmt::format("{}; no peer access from GPU {}", text, fmt::join(apart, ", ")),
             "other GPUs (CUDA_VISIBLE_DEVICES)");
}

void compare_tensors(Examination& found, const GpusFound& gpus, const schedule::Concrete& made) {
  uint64_t bytes[3] = {};
  for (const schedule::ConcreteTensor& tensor : made.tensors) bytes[size_t(tensor.role)] += tensor.bytes;
  const std::string needed = fmt::format(
      "{} inputs, {} outputs, {} temporaries per rank", format_bytes(bytes[size_t(schedule::Role::in)]),
      format_bytes(bytes[size_t(schedule::Role::out)]), format_bytes(bytes[size_t(schedule::Role::temp)]));
  compare_bytes(found, gpus, needed, bytes[0] + bytes[1] + bytes[2], "smaller parameters, or more ranks");
}

/// Examines the launched plans. The longest message of each plan decides its needs.
void compare_launches(Examination& found, const GpusFound& gpus, const schedule::Concrete& made,
                      const BlockPlans& plans) {
  for (const auto& [name, plan] : plans) {
    uint64_t launches = 0, bytes = 0;
    DType dtype = DType::f32;
    for (const schedule::Step& step : made.steps[0]) {
      if (step.kind != StepKind::launch || step.name != name) continue;
      ++launches;
      const bool counts_output = collective_info(plan.collective).counts_output();
      const schedule::Box& message = counts_output ? step.writes[0] : step.reads[0];
      bytes = std::max(bytes, message.bytes);
      dtype = made.tensors[message.tensor].dtype;
    }
    found.pass("launch",
               fmt::format("{}: {} ({}), {}, of at most {} bytes of {}", name, plan.name, plan.collective,
                           launches == 1 ? "once" : fmt::format("{} times", launches), format_bytes(bytes),
                           dtype_name(dtype)));
    examine_launched(found, gpus, plan, bytes, dtype);
  }
}

}  // namespace

void examine_schedule(Examination& found, const GpusFound& gpus, const Plan& plan,
                      const schedule::Concrete& made, const BlockPlans& plans) {
  found.pass("plan", plan.name + ": host schedule of " + count(made.ranks, "rank"));
  compare_ranks(found, gpus, made.ranks);
  const schedule::Concrete expanded = schedule::expand_movers(made);
  found.pass("streams", fmt::format("{}, {} between ranks", count(made.streams.size(), "stream"),
                                    count(expanded.flags.size(), "flag")));
  compare_calls(found, expanded);
  compare_transfers(found, gpus, expanded);
  compare_tensors(found, gpus, made);
  compare_launches(found, gpus, made, plans);
}

}  // namespace chorale::tools
