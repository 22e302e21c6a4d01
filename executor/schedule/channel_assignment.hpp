/// \file
/// This file assigns the channels that SM copies use. An SM copy is a transfer that thread blocks move (via
/// the movers kernel, staged and port), not a copy engine. Its two ends connect on the channels of a link
/// between two ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "chorale/schedule/concrete.hpp"

namespace chorale::schedule_run {

/// Holds the channel assignment of one transfer. Both sides have the same number of thread blocks, and each
/// block has its own channel, from `channel` on.
struct AssignedChannel {
  uint32_t channel = 0, blocks = 0;  ///< 0 blocks: it is no SM copy
  schedule::Box to;                  ///< the receiver's box
};

/// Gives the needs of all transfers via one of these movers for the links between ranks.
struct Links {
  schedule::Mover mover = schedule::Mover::kernel;
  uint32_t channels = 0;     ///< the most channels between two ranks
  uint64_t share_bytes = 0;  ///< the most bytes that a block moves
};

struct ChannelAssignment {
  std::vector<AssignedChannel> of_pair;  ///< by position in Concrete::pairs
  std::vector<Links> links;              ///< one per mover in use; the same on all ranks

  /// Returns by stream the most blocks of one SM copy of the rank. Only one SM copy per stream runs at a
  /// time.
  std::vector<uint64_t> blocks_by_stream(const schedule::Concrete&, uint32_t rank) const;
};

/// A transfer gets another thread block only for this many more bytes. An order to a proxy takes
/// microseconds, so another order needs more bytes.
inline constexpr uint64_t bytes_of_a_block = 64 * 1024, bytes_of_an_order = 512 * 1024;

/// Returns the number of thread blocks for a transfer: one per `each` bytes, at least one and at most `most`.
uint32_t blocks_for(uint64_t bytes, uint32_t most, uint64_t each = bytes_of_a_block);

/// Assigns channels to all transfers. Transfers share channels only if they are on one stream at both ends,
/// so that both ends reach them one after the other in the same order.
/// \param most_blocks the most blocks of a transfer
ChannelAssignment assign_channels(const schedule::Concrete& expanded, uint32_t most_blocks);

}  // namespace chorale::schedule_run
