#pragma once
/// \file
/// The thread blocks of an SM copy do all sends and receives of a group via one mover in parallel. CUDA and
/// the CPU share this source. On CUDA an SM copy is a kernel on a CUDA stream.
///
/// Each transfer has its own blocks, the same number at both ends. Each block has its own channel: an end of
/// a link whose counters only grow, in memory that its kernels own. So nothing is reset between runs, or
/// between replays of a graph.

#include <cstdint>

#include "chorale/device/deadline.hpp"
#include "chorale/device/fabrics.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/link.hpp"
#include "chorale/device/tiles.hpp"
#include "copy_regions.hpp"

namespace chorale::schedule_run {

/// Describes one transfer as one of its ends sees it.
struct SmCopyPart {
  const StridedRegion* regions = nullptr;  ///< in the order of the message; none if the peer does the work
  uint32_t region_count = 0;
  uint32_t sends = 0;  ///< 0: this end receives
  int32_t peer = -1;
  uint32_t channel = 0;            ///< the channel of its first block
  uint32_t first = 0, blocks = 0;  ///< position among the blocks of the SM copy
  uint64_t bytes = 0;
};

struct SmCopy {
  EndpointTable links;
  const SmCopyPart* parts = nullptr;
  uint32_t blocks = 0;
  /// If not 0, the sender writes into the receiver's tensor, so its strided regions point there. If 0, data
  /// goes through the rings of the links, and the strided regions point to and from the message.
  uint32_t zero_copy = 0;
};

/// Holds the arguments of one launch of an SM copy's kernel.
struct SmCopyLaunch {
  Deadline deadline;
  uint32_t rank = 0;
  uint32_t* stopped_at = nullptr;  ///< set to `at` if the kernel stops, unless it is already set
  uint32_t at = 0;
};

// -- Directly into the peer's tensor

/// Waits until the receiver is ready, writes the share into its tensor, and signals that the share is there.
CHORALE_FN Stop put_share(const Group& group, const Endpoint& e, const SmCopyPart& part, const Leg& share,
                          const Deadline& deadline) {
  const uint64_t turn = load_relaxed(&e.local->cursor.sent) + 1;
  const Stop stop = wait_until(group, &e.local->slot_free, Cmp::ge, turn, deadline);
  if (stop != Stop::none) return stop;
  copy_regions(group, part.regions, part.region_count, share.begin, share.begin + share.bytes, 0, 0);
  // All threads have read the count, because the wait has synchronised them.
  if (group.leader()) store_relaxed(&e.local->cursor.sent, turn);
  signal_set(group, &e.remote->data_ready, turn);
  return Stop::none;
}

/// Allows the sender to write here, and waits until it has.
CHORALE_FN Stop take_share(const Group& group, const Endpoint& e, const Deadline& deadline) {
  const uint64_t turn = load_relaxed(&e.local->cursor.received) + 1;
  signal_set(group, &e.remote->slot_free, turn);
  const Stop stop = wait_until(group, &e.local->data_ready, Cmp::ge, turn, deadline);
  if (stop == Stop::none && group.leader()) store_relaxed(&e.local->cursor.received, turn);
  return stop;
}

// -- Through the rings of the links

/// RegionsProduce gathers the sent strided regions into tiles. RegionsConsume spreads received tiles to
/// strided regions.
struct RegionsProduce {
  using block_hook = void;
  const StridedRegion* regions;
  uint32_t count;

  template <class X>
  CHORALE_FN void produce(const Ctx<X>& ctx, const Group& group, TileOut tile) const {
    // ctx.index is the position of the tile's first byte in the message.
    copy_regions(group, regions, count, ctx.index, ctx.index + tile.bytes,
                 reinterpret_cast<uint64_t>(tile.data) - ctx.index, 0);
  }
};
struct RegionsConsume {
  using block_hook = void;
  const StridedRegion* regions;
  uint32_t count;

  template <class X>
  CHORALE_FN void consume(const Ctx<X>& ctx, const Group& group, TileIn tile) const {
    copy_regions(group, regions, count, ctx.index, ctx.index + tile.bytes, 0,
                 reinterpret_cast<uint64_t>(tile.data) - ctx.index);
  }
};

/// Sends or receives a share through the rings. Returns when the peer has read the sent data, or this rank
/// has read the received data. After that no peer accesses this rank's memory. A proxy may still have to pass
/// the credit on to the peer. This call does not wait for that, because it would also wait for everything
/// that the proxy copies for other streams.
CHORALE_FN Stop move_share(const Group& group, const Endpoint& e, const SmCopyPart& part, const Leg& share,
                           const Deadline& deadline) {
  return with_link(e, [&](auto fabric) {
    using Fabric = decltype(fabric);
    if (part.sends) {
      const Stop stop = send_tiles<uint8_t, Fabric>(
          group, e, share, RegionsProduce{part.regions, part.region_count}, deadline);
      if (stop != Stop::none) return stop;
      return Fabric::wait_free(group, e, load_relaxed(&e.local->cursor.sent), deadline);
    }
    return recv_tiles<uint8_t, Fabric>(group, e, share, RegionsConsume{part.regions, part.region_count},
                                       deadline);
  });
}

/// Runs one block of an SM copy. Every block calls it.
CHORALE_FN Stop sm_copy(const Group& block, const SmCopy& work, const Deadline& deadline) {
  if (work.blocks == 0) return Stop::none;  // launched only to load the kernel
  uint32_t at = 0;
  while (block.id >= work.parts[at].first + work.parts[at].blocks) ++at;
  const SmCopyPart part = work.parts[at];
  Group group = block;
  group.id = block.id - part.first;
  group.count = part.blocks;
  const Endpoint& e = work.links.at(part.peer, part.channel + group.id);
  Leg message;
  message.bytes = part.bytes;
  const Leg share = share_of(message, group.id, group.count);
  if (!work.zero_copy) return move_share(group, e, part, share, deadline);
  return part.sends ? put_share(group, e, part, share, deadline) : take_share(group, e, deadline);
}

/// Runs one block of an SM copy on a stream that cannot look at the result. A block that stops reports it in
/// memory that the host and the peers check.
CHORALE_FN void sm_copy(const Group& block, const SmCopy& work, const SmCopyLaunch& launch) {
  const Stop stop = sm_copy(block, work, launch.deadline);
  if (stop == Stop::none || !block.leader()) return;
  if (load_relaxed(launch.stopped_at) == 0) store_relaxed(launch.stopped_at, launch.at);
  if (launch.deadline.shared) raise_stop(launch.deadline.shared, stop, launch.rank);
}

}  // namespace chorale::schedule_run
