#include "order.hpp"

#include <algorithm>
#include <iterator>

namespace chorale::msccl {

Order::Order(const Algorithm& algorithm, const std::vector<Connection>& connections,
             const std::vector<std::vector<Dependency>>& dependencies) {
  uint32_t blocks = 0;
  for (const AlgorithmGpu& gpu : algorithm.gpus) {
    first_.push_back(blocks);
    blocks += uint32_t(gpu.blocks.size());
  }
  std::vector<std::vector<Edge>> edges(blocks);
  size_t count = 0;
  for (uint32_t gpu = 0; gpu < algorithm.gpus.size(); ++gpu) {
    for (const auto& [before, after] : dependencies[gpu])
      edges[flat({gpu, after})].push_back({flat({gpu, before}), before.step, after.step});
    count += dependencies[gpu].size();
  }
  for (const Connection& made : connections) {
    for (const Message& message : made.messages)
      edges[first_[made.to] + made.receiver].push_back(
          {first_[made.from] + made.sender, message.sent, message.received});
    count += made.messages.size();
  }
  // Each step has a clock. If the clocks were too large, no order is known, which only costs slots and
  // copies.
  constexpr size_t most_clock_entries = size_t{1} << 25;
  if ((count + blocks) * blocks > most_clock_entries) return;
  for (std::vector<Edge>& of : edges)
    std::stable_sort(of.begin(), of.end(),
                     [](const Edge& left, const Edge& right) { return left.then < right.then; });
  clocks_.assign(blocks, {Clock{0, std::vector<uint32_t>(blocks, 0)}});
  run(edges);
}

/// Follows each edge of all thread blocks after the step at its beginning has been reached. If the edges form
/// a circle, no order is known.
void Order::run(const std::vector<std::vector<Edge>>& edges) {
  const size_t blocks = edges.size();
  std::vector<size_t> next(blocks, 0);
  const auto reached = [&](uint32_t block, uint32_t step) {
    return next[block] == edges[block].size() || edges[block][next[block]].then > step;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t block = 0; block < blocks; ++block) {
      for (; next[block] < edges[block].size(); ++next[block], moved = true) {
        const Edge& edge = edges[block][next[block]];
        if (!reached(edge.block, edge.step)) break;
        Clock now = clocks_[block].back();
        now.step = edge.then;
        const Clock& theirs = clock(edge.block, edge.step);
        for (size_t other = 0; other < blocks; ++other)
          now.over[other] = std::max(now.over[other], theirs.over[other]);
        now.over[edge.block] = std::max(now.over[edge.block], edge.step + 1);
        clocks_[block].push_back(std::move(now));
      }
    }
  }
  known_ = true;
  for (size_t block = 0; block < blocks; ++block) known_ = known_ && next[block] == edges[block].size();
}

const Order::Clock& Order::clock(uint32_t block, uint32_t step) const {
  const std::vector<Clock>& all = clocks_[block];
  const auto behind = std::upper_bound(all.begin(), all.end(), step,
                                       [](uint32_t wanted, const Clock& at) { return wanted < at.step; });
  return *std::prev(behind);
}

bool Order::before(Moment first, Moment then) const {
  const uint32_t block = flat(first);
  if (block == flat(then)) return first.step.step < then.step.step;
  return known_ && clock(flat(then), then.step.step).over[block] > first.step.step;
}

}  // namespace chorale::msccl
