/// \file
/// Stands in for a switch. It executes the steps of switch channels by multicast in the members' own memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "program_rank.hpp"

namespace chorale::test {

/// Takes a text that describes an error.
using Note = std::function<void(const std::string&)>;

/// Does the work of a switch, in the members' own memory.
inline Stop by_switch(const Note& note, const Group& group, const ProgramRank& rank,
                      const lowering::ProgramStep& step, const Mem* plain) {
  const bool reduces = step.kind != lowering::ProgramStepKind::multicast_store,
             stores = step.kind != lowering::ProgramStepKind::multicast_reduce;
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

}  // namespace chorale::test
