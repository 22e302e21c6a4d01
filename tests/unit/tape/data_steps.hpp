/// \file
/// Does the steps that move data, as the host plays them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tape_rank.hpp"

namespace chorale::test {

/// Takes a text that says what is wrong.
using Note = std::function<void(const std::string&)>;

/// A GPU moves whole units without a look at what exists.
inline void check_whole(const Note& note, const cuda::TapeStep& step, const Mem* places, uint32_t n) {
  if (step.bytes % unit_bytes != 0) note("whole units, and a tail");
  for (uint32_t at = 0; at < n; ++at) {
    if (!places[at].data || reinterpret_cast<uint64_t>(places[at].data) % unit_bytes != 0) {
      note("whole units at an odd address, operation " + std::to_string(step.op));
    }
    if (places[at].valid < step.bytes)
      note("whole units that do not exist, operation " + std::to_string(step.op));
  }
}

/// A source of a sum: plain memory, or packets.
template <class P>
struct Either {
  const Mem* plain;
  const Packets<P>* packets;

  static constexpr bool waits = true;

  uint64_t run(uint64_t at) const { return plain ? plain->run(at) : packets->run(at); }
  Stop view(const Group& group, uint64_t at, uint64_t bytes, char* room, const char*& seen) const {
    return plain ? plain->view(group, at, bytes, room, seen) : packets->view(group, at, bytes, room, seen);
  }
};

template <ReduceOp Op, class P>
Stop combine(const Group& group, const cuda::TapeStep& step, const Mem* plain, const Packets<P>* packets,
             const StepSinks<P>& sinks) {
  if (step.kind == cuda::TapeKind::reduce) {
    return transfer(group, step.bytes, Reduced<Op, int32_t>{plain[0], plain + 1, step.n}, sinks);
  }
  std::vector<Either<P>> sources;
  for (uint32_t at = 0; at < step.n; ++at) sources.push_back({nullptr, packets + at});
  if (step.own != 0) sources.insert(sources.begin() + step.own - 1, {plain, nullptr});
  return transfer(group, step.bytes,
                  Reduced<Op, int32_t, Either<P>, Either<P>>{sources[0], sources.data() + 1,
                                                             uint32_t(sources.size() - 1)},
                  sinks);
}

/// Does what a switch would do, in the members' own memory.
inline Stop run_multicast(const Note& note, HostBlock& block, const TapeRank& rank, const Mem* plain,
                          const cuda::TapeStep& step) {
  const Group group = block_group(0, 1, &block);
  const bool reduces = step.kind != cuda::TapeKind::multicast_store,
             stores = step.kind != cuda::TapeKind::multicast_reduce;
  const std::vector<char*> from = rank.members_of(plain[0].data), to = rank.members_of(plain[1].data);
  if (step.bytes % unit_bytes != 0 || !step.whole || step.plain_sinks != 1)
    note("not whole units of a switch");
  for (uint32_t at = 0; at < 2; ++at) {
    const bool switched = at == 0 ? reduces : stores;
    if (switched && reinterpret_cast<uint64_t>(plain[at].data) % unit_bytes != 0)
      note("a switch at an odd address");
    if (switched != !(at == 0 ? from : to).empty())
      note("a switch's address is taken for another, or the reverse");
    if (plain[at].valid < step.bytes) note("units of a switch that do not exist");
  }
  const MultiStore all{to.data(), uint32_t(to.size())};
  if (!reduces) return transfer(group, step.bytes, plain[0], all);
  const auto reduce = [&](const auto& source) {
    return stores ? transfer(group, step.bytes, source, all) : transfer(group, step.bytes, source, plain[1]);
  };
  const uint32_t n = uint32_t(from.size());
  switch (ReduceOp(step.reduce_op)) {
    case ReduceOp::min:
      return reduce(Multi<ReduceOp::min, int32_t>{from.data(), n});
    case ReduceOp::max:
      return reduce(Multi<ReduceOp::max, int32_t>{from.data(), n});
    default:
      return reduce(Multi<ReduceOp::sum, int32_t>{from.data(), n});
  }
}

template <class P>
Stop run_data(const Note& note, HostBlock& block, const TapeRank& rank, const SettledPage& page,
              const std::vector<Packets<P>>& all_packets, const cuda::TapeStep& step) {
  const Group group = block_group(0, 1, &block);
  const Mem* const plain = page.plain.data() + step.first_plain;
  const Packets<P>* const packets = all_packets.data() + step.first_packets;
  if (step.kind >= cuda::TapeKind::multicast_reduce) return run_multicast(note, block, rank, plain, step);
  const bool alone = step.kind == cuda::TapeKind::copy || step.kind == cuda::TapeKind::unpack;
  const bool plain_first = step.kind == cuda::TapeKind::copy || step.kind == cuda::TapeKind::reduce;
  const uint32_t n_plain = step.kind == cuda::TapeKind::reduce ? 1 + step.n
                           : plain_first || step.own != 0      ? 1
                                                               : 0;
  const uint32_t n_packets = plain_first ? 0 : alone ? 1 : step.n;
  const StepSinks<P> sinks{plain + n_plain, packets + n_packets, step.plain_sinks, step.packet_sinks};
  const uint32_t odd = (reinterpret_cast<uint64_t>(rank.in) % unit_bytes ? 1 : 0) |
                       (reinterpret_cast<uint64_t>(rank.out) % unit_bytes ? 2 : 0);
  if (step.whole && (step.passed & odd) == 0) check_whole(note, step, plain, n_plain + step.plain_sinks);
  if (alone) {
    return plain_first ? transfer(group, step.bytes, plain[0], sinks)
                       : transfer(group, step.bytes, packets[0], sinks);
  }
  switch (ReduceOp(step.reduce_op)) {
    case ReduceOp::min:
      return combine<ReduceOp::min>(group, step, plain, packets, sinks);
    case ReduceOp::max:
      return combine<ReduceOp::max>(group, step, plain, packets, sinks);
    case ReduceOp::prod:
      return combine<ReduceOp::prod>(group, step, plain, packets, sinks);
    default:
      return combine<ReduceOp::sum>(group, step, plain, packets, sinks);
  }
}

}  // namespace chorale::test
