#include "placement.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "algorithm.hpp"
#include "chorale/collective.hpp"
#include "connections.hpp"

namespace chorale::msccl {
namespace {

/// Names a step of a gpu.
struct Moment {
  uint32_t gpu = 0;
  StepRef step;
};

/// Computes which steps come before which, whatever the speed of the gpus. The order follows from thread
/// blocks, dependencies and messages.
class Order {
 public:
  /// \param dependencies  by gpu
  Order(const Algorithm&, const std::vector<Connection>&,
        const std::vector<std::vector<Dependency>>& dependencies);

  /// Returns whether `first` has ended before `then` accesses anything; false if that is unknown.
  bool before(Moment first, Moment then) const {
    const uint32_t block = flat(first);
    if (block == flat(then)) return first.step.step < then.step.step;
    return known_ && clock(flat(then), then.step.step).over[block] > first.step.step;
  }

 private:
  /// Says that a step comes after one of another thread block.
  struct Edge {
    uint32_t block = 0, step = 0;  ///< the step before
    uint32_t then = 0;             ///< the number of the step after
  };
  /// Says how many steps of each thread block have ended when a step of its own thread block begins.
  struct Clock {
    uint32_t step = 0;
    std::vector<uint32_t> over;
  };

  uint32_t flat(Moment at) const { return first_[at.gpu] + at.step.block; }

  const Order::Clock& clock(uint32_t block, uint32_t step) const {
    const std::vector<Clock>& all = clocks_[block];
    const auto behind = std::upper_bound(all.begin(), all.end(), step,
                                         [](uint32_t wanted, const Clock& at) { return wanted < at.step; });
    return *std::prev(behind);
  }

  /// Follows each edge of all thread blocks after the step at its beginning has been reached. If the edges
  /// form a circle, no order is known.
  void run(const std::vector<std::vector<Edge>>& edges) {
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

  // Thread blocks are numbered across all gpus.
  std::vector<uint32_t> first_;             // number of a gpu's first thread block
  std::vector<std::vector<Clock>> clocks_;  // by thread block
  bool known_ = false;
};

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

/// Describes a step of the gpu that reads or writes chunks of a memory.
struct Access {
  uint64_t begin = 0, end = 0;
  StepRef step;
};

/// Lists the accesses of all steps of a gpu, by memory.
class Accesses {
 public:
  Accesses(const Algorithm& algorithm, uint32_t gpu) : algorithm_(algorithm), gpu_(gpu) {
    const std::vector<Block>& blocks = algorithm.gpus[gpu].blocks;
    for (uint32_t id = 0; id < blocks.size(); ++id) {
      for (uint32_t number = 0; number < blocks[id].steps.size(); ++number) {
        const AlgorithmStep& step = blocks[id].steps[number];
        if (step.type->source) add(step.source, {id, number});
        if (step.type->destination) add(step.destination, {id, number});
      }
    }
    for (Memory& memory : memories_) {
      std::sort(memory.accesses.begin(), memory.accesses.end(),
                [](const Access& left, const Access& right) { return left.begin < right.begin; });
    }
  }

  /// Returns whether a message that is sent at `sent` may immediately overwrite a region of this gpu that
  /// `received` would write. It may if all other accesses come after `received`, or have ended when the
  /// message is sent.
  bool free(const Region& region, Moment sent, StepRef received, const Order& order) const {
    const MemoryPlace place = memory_place(algorithm_, gpu_, region);
    const Memory& memory = memories_[size_t(place.memory)];
    const uint64_t end = place.begin + region.size;
    const uint64_t from = place.begin - std::min(place.begin, memory.longest);
    auto access = std::lower_bound(memory.accesses.begin(), memory.accesses.end(), from,
                                   [](const Access& of, uint64_t least) { return of.begin < least; });
    for (; access != memory.accesses.end() && access->begin < end; ++access) {
      if (access->end <= place.begin || access->step == received) continue;
      const Moment other{gpu_, access->step};
      if (!order.before({gpu_, received}, other) && !order.before(other, sent)) return false;
    }
    return true;
  }

 private:
  struct Memory {
    std::vector<Access> accesses;
    uint64_t longest = 0;  // in chunks
  };
  void add(const Region& region, StepRef step) {
    const MemoryPlace at = memory_place(algorithm_, gpu_, region);
    Memory& memory = memories_[size_t(at.memory)];
    memory.accesses.push_back({at.begin, at.begin + region.size, step});
    memory.longest = std::max(memory.longest, region.size);
  }

  const Algorithm& algorithm_;
  uint32_t gpu_;
  Memory memories_[3];
};

}  // namespace

MemoryPlace memory_place(const Algorithm& algorithm, uint32_t gpu, const Region& region) {
  if (region.buffer == BufferKind::scratch || !algorithm.inplace) return {region.buffer, region.index};
  const uint64_t own = region.buffer == BufferKind::input ? algorithm.input : algorithm.output;
  const uint64_t all = std::max(algorithm.input, algorithm.output);
  const CollectiveInfo& collective = collective_info(algorithm.collective);
  const bool part = collective.input_is_part() || collective.output_is_part();
  return {BufferKind::output, region.index + (part && own < all ? own * gpu : 0)};
}

bool overlap(const Algorithm& algorithm, uint32_t gpu, const Region& one, const Region& other) {
  const MemoryPlace left = memory_place(algorithm, gpu, one), right = memory_place(algorithm, gpu, other);
  return left.memory == right.memory && left.begin < right.begin + other.size &&
         right.begin < left.begin + one.size;
}

std::vector<std::vector<Arrival>> place_messages(Algorithm& algorithm,
                                                 const std::vector<Connection>& connections,
                                                 const std::vector<std::vector<Dependency>>& dependencies) {
  const Order order(algorithm, connections, dependencies);
  std::vector<std::vector<Arrival>> arrivals(connections.size());
  std::vector<std::vector<size_t>> to(algorithm.gpus.size());  // connections, by receiver
  for (size_t k = 0; k < connections.size(); ++k) to[connections[k].to].push_back(k);
  for (uint32_t gpu = 0; gpu < algorithm.gpus.size(); ++gpu) {
    const Accesses accesses(algorithm, gpu);
    uint64_t& scratch = algorithm.gpus[gpu].scratch;
    for (const size_t k : to[gpu]) {
      const Connection& connection = connections[k];
      const Block& receiver = algorithm.gpus[gpu].blocks[connection.receiver];
      for (const Message& message : connection.messages) {
        const AlgorithmStep& step = receiver.steps[message.received];
        Arrival& arrival = arrivals[k].emplace_back();
        arrival.direct = !step.type->reduces && step.type->destination &&
                         accesses.free(step.destination, {connection.from, {connection.sender, message.sent}},
                                       {connection.receiver, message.received}, order);
        if (arrival.direct) continue;
        arrival.slot = scratch;
        scratch += step.count;
      }
    }
  }
  return arrivals;
}

}  // namespace chorale::msccl
