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

/// The calling thread's team, of a block of whole warps. It has the group's number, and so its channels.
CHORALE_FN Group team_of_links(const Group& block, uint32_t teams) {
  Group team = multiwarp_group(block, block.size / teams);
  team.id = block.id;
  team.count = block.count;
  return team;
}

/// The calling thread's team: the group itself if it is one.
CHORALE_FN Group link_team(const Group& group, uint32_t teams) {
  return teams == 1 ? group : team_of_links(group, teams);
}

}  // namespace detail
}  // namespace chorale
