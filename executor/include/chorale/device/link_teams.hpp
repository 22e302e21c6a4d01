#pragma once
// The links of a block, dealt out to teams of its warps: what one link waits for in memory is then waited for
// while others are.

#include <cstdint>

#include "chorale/device/group.hpp"
#include "chorale/device/macros.hpp"

namespace chorale {

/// Ranks of a collective, at most.
constexpr int32_t most_ranks = 64;

namespace detail {

/// How many teams deal with a group's links, each with its own: teams of whole warps of a block, of the same
/// size, for up to all ranks.
CHORALE_FN uint32_t link_teams(const Group& group, int32_t ranks) {
#if defined(__CUDACC__)
  constexpr uint32_t least = warp_threads, most = named_barriers - 1;
#else
  constexpr uint32_t least = 1, most = most_ranks;
#endif
  if (group.scope != Scope::block || group.size % least != 0) return 1;
  const uint32_t hands = group.size / least;
  uint32_t teams = uint32_t(ranks) < hands ? uint32_t(ranks) : hands;
  if (teams > most) teams = most;
  while (hands % teams != 0) --teams;
  return teams;
}

/// The calling thread's team. It has the group's number, and so its channels.
CHORALE_FN Group link_team(const Group& group, uint32_t teams) {
  if (teams == 1) return group;
  Group team = multiwarp_group(group, group.size / teams);
  team.id = group.id;
  team.count = group.count;
  return team;
}

}  // namespace detail
}  // namespace chorale
