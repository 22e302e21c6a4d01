#pragma once
// NearLinks keeps the links of a group close to its threads, because a collective needs them for each tile
// and peer.

#include <cstdint>

#include "chorale/device/group.hpp"
#include "chorale/device/link.hpp"
#include "chorale/device/link_teams.hpp"
#include "chorale/device/macros.hpp"

namespace chorale {
namespace detail {

/// Holds the positions of the streams over a group's links.
struct Positions {
  uint64_t sent[most_ranks], received[most_ranks];
};

#if defined(__CUDACC__)
/// Holds a block's links in shared memory. The EndpointTable is slower: with each acquiring wait a
/// multiprocessor drops the table from its L1 cache. The positions are here too, because an array that is
/// indexed at run time would otherwise be in local memory.
struct LinksOfBlock {
  Endpoint links[most_ranks];
  Positions positions;
};

CHORALE_FN LinksOfBlock& links_of_block() {
  alignas(16) __shared__ char room[sizeof(LinksOfBlock)];
  return *reinterpret_cast<LinksOfBlock*>(room);
}
#endif

/// Holds a group's links, and the positions that their streams have before a collective. A block may have
/// only one such object at a time, because of the shared memory.
class NearLinks {
 public:
  /// Finds the links and the positions of their streams. At once, each thread may use only the links of the
  /// peers group.rank, group.rank + group.size and so on, and advance their streams. After the group has
  /// synchronised, it may use all links.
  /// \param positions  memory for the positions if the group is not a block. It must outlive this object
  CHORALE_FN NearLinks(const Group& group, const EndpointTable& table, Positions& positions)
      : table_(table), channel_(group.id), positions_(&positions) {
    if (table.ranks > most_ranks) refuse("a collective has more than 64 ranks");
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
