#include "placement.hpp"

#include <algorithm>

#include "chorale/collective.hpp"
#include "order.hpp"

namespace chorale::msccl {
namespace {

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
