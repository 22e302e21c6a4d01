#pragma once
// The links of a group as a collective looks them up, for each tile and peer anew.

#include <cstdint>

#include "chorale/device/group.hpp"
#include "chorale/device/link.hpp"
#include "chorale/device/link_teams.hpp"
#include "chorale/device/macros.hpp"

namespace chorale {
namespace detail {

/// Where the streams over a group's links stand.
struct Positions {
  uint64_t sent[most_ranks], received[most_ranks];
};

#if defined(__CUDACC__)
/// A block has its links in shared memory. The table is further away: each wait that acquires makes a
/// multiprocessor forget what it had read of it. The same of positions, which a thread looks up by a number
/// and so would have in local memory.
struct LinksOfBlock {
  Endpoint links[most_ranks];
  Positions positions;
};

CHORALE_FN LinksOfBlock& links_of_block() {
  __shared__ alignas(16) char room[sizeof(LinksOfBlock)];
  return *reinterpret_cast<LinksOfBlock*>(room);
}
#endif

/// A group's links, and where their streams stood before a collective. One at a time of a block.
class NearLinks {
 public:
  /// `positions`: where the group is no block, they are kept there, for as long as this. A block is to meet
  /// before a thread looks up the links of others than the peers group.rank, group.rank + group.size and so
  /// on; it may advance the streams of these, and no others, before that.
  CHORALE_FN NearLinks(const Group& group, const EndpointTable& table, Positions& positions)
      : table_(table), channel_(group.id), positions_(&positions) {
    if (table.ranks > most_ranks) refuse("a collective of more ranks than there may be");
#if defined(__CUDACC__)
    if (group.scope == Scope::block) {
      LinksOfBlock& near = links_of_block();
      for (uint32_t peer = group.rank; peer < uint32_t(table.ranks); peer += group.size) {
        near.links[peer] = table.at(int32_t(peer), channel_);
        read_positions(near.links[peer], near.positions, peer);
      }
      links_ = near.links;
      positions_ = &near.positions;
      return;
    }
#endif
    for (uint32_t peer = 0; peer < uint32_t(table.ranks); ++peer) {
      read_positions(table.at(int32_t(peer), channel_), positions, peer);
    }
  }

  CHORALE_FN const Endpoint& operator[](int32_t peer) const {
    return links_ ? links_[peer] : table_.at(peer, channel_);
  }
  CHORALE_FN uint64_t sent(int32_t peer) const { return positions_->sent[peer]; }
  CHORALE_FN uint64_t received(int32_t peer) const { return positions_->received[peer]; }

 private:
  CHORALE_FN static void read_positions(const Endpoint& e, Positions& positions, uint32_t peer) {
    positions.sent[peer] = load_relaxed(&e.local->cursor.sent);
    positions.received[peer] = load_relaxed(&e.local->cursor.received);
  }

  const EndpointTable& table_;
  const uint32_t channel_;
  const Endpoint* links_ = nullptr;  ///< null: they are looked up in the table
  const Positions* positions_;
};

}  // namespace detail
}  // namespace chorale
