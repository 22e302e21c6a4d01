#include "shares.hpp"

#include <algorithm>
#include <set>

#include "compiler/plan/resolve.hpp"

namespace chorale::proof {
namespace {

/// Holds begin, end, and the number of members that share the part. The number is 1 if it is not shared, or
/// if members get whole chunks.
using Part = std::tuple<uint64_t, uint64_t, uint32_t>;

/// Returns whether each member gets whole chunks, or one gets all. Then their slices end at the same places
/// in every message.
bool is_even(const Access& access, const Op& op, const Turn& turn) {
  return op.group_size < 2 || (!turn.atoms && (access.end - access.begin) % op.group_size == 0);
}

}  // namespace

Shares::Shares(const Plan& plan, const Memory& memory) : memory_(memory) {
  if (memory.message().exact || !memory.any_groups()) return;
  std::vector<std::set<Part>> parts(memory.spaces());
  std::map<Key, OpPlace> places;  // of packets
  SymbolicSteps steps;
  uint64_t limit = max_executed;
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) {
      for_each_turn(memory.message(), block, limit, [&](const Op& op, const Turn& turn) {
        list_steps(plan, gpu, block, op, steps);
        for (const Access& access : steps.accesses) {
          const Range all = memory.whole(access, turn), mine = memory.range(access, op, turn);
          const bool even = is_even(access, op, turn);
          const Range& range = even ? mine : all;
          if (range.begin == range.end) continue;
          parts[range.space].insert({range.begin, range.end, even ? 1 : op.group_size});
          if (!even && access.packets) {
            places.try_emplace(
                {range.space, range.begin, range.end, op.group_size},
                OpPlace{uint32_t(&gpu - plan.gpus.data()), uint32_t(&block - gpu.threadblocks.data()),
                        uint32_t(&op - block.ops.data())});
          }
        }
      });
    }
  }
  uint32_t sets = 0;
  for (uint32_t space = 0; space < parts.size(); ++space) {
    for (const auto& [begin, end, members] : parts[space]) {
      if (members == 1) continue;
      // C++20 lets a lambda capture structured bindings, but Clang supports it only from version 16 on. So
      // these are copies.
      const auto fits = [begin = begin, end = end, members = members](const Part& other) {
        const auto [from, to, among] = other;
        if (to <= begin || end <= from) return true;
        // The other part has the same slices, or contains all of them.
        return other == Part{begin, end, members} || (among == 1 && from <= begin && end <= to);
      };
      const bool alone = std::all_of(parts[space].begin(), parts[space].end(), fits);
      if (alone) continue;
      if (space % spaces_per_rank == packet_space && !packets_)
        packets_ = places.at({space, begin, end, members});
      loose_[{space, begin, end, members}] = ++sets;
    }
  }
}

uint32_t Shares::loose(const Access& access, const Op& op, const Turn& turn) const {
  if (loose_.empty() || is_even(access, op, turn)) return 0;
  const Range all = memory_.whole(access, turn);
  const auto found = loose_.find({all.space, all.begin, all.end, op.group_size});
  return found == loose_.end() ? 0 : found->second;
}

}  // namespace chorale::proof
