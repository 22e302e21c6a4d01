// This file follows data backwards through the moves of an execution, whatever their order. It finds more
// ways than an execution can take, and never fewer.

#include "flow.hpp"

#include <algorithm>

namespace chorale::proof {

Flow::Flow(const SymbolicExecutor& executor)
    : executor_(executor), input_(executor.memory().cells()), seen_(executor.memory().cells()) {}

void Flow::begin(uint32_t rank, uint32_t launch) {
  if (launch) return;
  const Memory& memory = executor_.memory();
  const Range input = memory.buffer(rank, BufferKind::input);
  if (input.begin == input.end) return;
  const uint32_t first = memory.cell(input, 0);
  for (uint32_t cell = first; cell < first + memory.count(input); ++cell)
    input_[cell] = Origin{rank, memory.range_of(cell).begin - input.begin};
}

void Flow::move(uint32_t chain, const SymbolicStep& step, std::span<const Touch> touches) {
  if (executor_.chains()[chain].launch) return;
  for (const Touch& dest : touches.subspan(step.sources)) {
    for (const Touch& source : touches.first(step.sources)) {
      for (uint32_t at = 0; at < dest.cells; ++at) moves_.emplace_back(dest.cell + at, source.cell + at);
    }
  }
}

void Flow::sort() {
  if (sorted_ == moves_.size()) return;
  std::sort(moves_.begin(), moves_.end());
  moves_.erase(std::unique(moves_.begin(), moves_.end()), moves_.end());
  sorted_ = moves_.size();
}

std::vector<Origin> Flow::unreachable(uint32_t cell, const std::vector<Origin>& wanted) {
  sort();
  std::vector<Origin> left = wanted;
  std::vector<uint32_t> open{cell};
  std::fill(seen_.begin(), seen_.end(), false);
  visits_ += seen_.size() / 64;  // clearing the marks takes time too
  seen_[cell] = true;
  while (!open.empty() && !left.empty()) {
    if (++visits_ > most_visits) return {};
    const uint32_t here = open.back();
    open.pop_back();
    if (input_[here]) std::erase(left, *input_[here]);
    for (auto at = std::lower_bound(moves_.begin(), moves_.end(), std::pair(here, uint32_t{0}));
         at != moves_.end() && at->first == here; ++at) {
      if (seen_[at->second]) continue;
      seen_[at->second] = true;
      open.push_back(at->second);
    }
  }
  return left;
}

}  // namespace chorale::proof
