// This file writes the copies of inputs that are also outputs. In place MSCCL does nothing for them. Out of
// place they come before the first step that accesses one of the two chunks.

#include <algorithm>

#include "algorithm.hpp"

namespace chorale::msccl {
namespace {

/// Returns whether the step must come after the copy, because it writes the source or accesses the
/// destination.
bool follows(const Algorithm& algorithm, uint32_t gpu, const AlgorithmStep& step, const AlgorithmStep& copy) {
  if (step.type->source && overlap(algorithm, gpu, step.source, copy.destination)) return true;
  return step.type->destination && (overlap(algorithm, gpu, step.destination, copy.destination) ||
                                    overlap(algorithm, gpu, step.destination, copy.source));
}

/// Returns steps that copy, one per run of neighbouring chunks, in the order of their destinations.
std::vector<AlgorithmStep> steps_of(const Algorithm& algorithm, uint32_t gpu) {
  std::vector<InitialCopy> copies = algorithm.gpus[gpu].copies;
  std::stable_sort(copies.begin(), copies.end(),
                   [](const InitialCopy& left, const InitialCopy& right) { return left.to < right.to; });
  std::vector<AlgorithmStep> steps;
  for (const auto& [from, to, line] : copies) {
    const Region source{BufferKind::input, from, 1}, destination{BufferKind::output, to, 1};
    if (memory_place(algorithm, gpu, source) == memory_place(algorithm, gpu, destination)) continue;
    if (!steps.empty() && steps.back().source.index + steps.back().count == from &&
        steps.back().destination.index + steps.back().count == to) {
      steps.back().source.size = steps.back().destination.size = ++steps.back().count;
      continue;
    }
    AlgorithmStep& step = steps.emplace_back();
    step.type = step_type("cpy");
    step.source = source;
    step.destination = destination;
    step.count = 1;
    step.awaited = true;
    step.line = line;
  }
  return steps;
}

}  // namespace

void write_copies(Algorithm& algorithm) {
  for (uint32_t gpu = 0; gpu < algorithm.gpus.size(); ++gpu) {
    std::vector<AlgorithmStep> copies = steps_of(algorithm, gpu);
    if (copies.empty()) continue;
    std::vector<Block>& blocks = algorithm.gpus[gpu].blocks;
    for (Block& block : blocks) {
      size_t met = 0;  // number of copies that have ended
      for (AlgorithmStep& step : block.steps) {
        size_t last = copies.size();
        while (last > met && !follows(algorithm, gpu, step, copies[last - 1])) --last;
        if (last <= met) continue;
        met = last;
        step.waits_for.push_back({uint32_t(blocks.size()), uint32_t(last - 1)});
      }
    }
    Block& block = blocks.emplace_back();
    block.line = copies.front().line;
    block.steps = std::move(copies);
  }
}

}  // namespace chorale::msccl
