#pragma once
// The warps of a block form teams that divide its links among them. So the waits for memory of one link
// overlap with those of the others.

#include <cstdint>

#include "chorale/device/group.hpp"
#include "chorale/device/macros.hpp"

namespace chorale {

/// Limits the number of ranks in a collective.
constexpr int32_t most_ranks = 64;

namespace detail {

/// Returns how many teams share a group's links. Teams are whole warps of a block and all of one size. There
/// is at most one team per rank.
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

/// Returns the calling thread's team, in a block of whole warps. The team has the group's id, and so its
/// channels.
CHORALE_FN Group team_of_links(const Group& block, uint32_t teams) {
  Group team = multiwarp_group(block, block.size / teams);
  team.id = block.id;
  team.count = block.count;
  return team;
}

/// Returns the calling thread's team, which is the group itself if there is only one.
CHORALE_FN Group link_team(const Group& group, uint32_t teams) {
  return teams == 1 ? group : team_of_links(group, teams);
}

}  // namespace detail
}  // namespace chorale
