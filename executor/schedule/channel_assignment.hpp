/// \file
/// Finds the channels that a transfers transfer uses. An SM copy is a transfer that thread blocks move (via
/// the movers kernel, staged and port), not a copy engine. Its two ends meet on the channels of a link
/// between two ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "chorale/host/concrete.hpp"

namespace chorale::hostrun {

/// The channels of one transfer: it has equally many thread blocks on either side, and each block a channel
/// of its own, from `channel` on.
struct AssignedChannel {
  uint32_t channel = 0, blocks = 0;  ///< 0 blocks: it is not transfers
  host::Box to;                      ///< the receiver's box
};

/// The needs of all transfers via one of these movers, for the links between ranks.
struct Links {
  host::Mover mover = host::Mover::kernel;
  uint32_t channels = 0;     ///< the most channels between two ranks
  uint64_t share_bytes = 0;  ///< the most bytes that a block moves
};

struct ChannelAssignment {
  std::vector<AssignedChannel> of_pair;  ///< by position in Concrete::pairs
  std::vector<Links> links;              ///< one for each mover in use; the same on all ranks

  /// Returns, for each lane, the most blocks that one SM copy of the rank has. Only one SM copy of a lane
  /// runs at a time.
  std::vector<uint64_t> blocks_by_lane(const host::Concrete&, uint32_t rank) const;
};

/// A transfer gets a further thread block only for this many more bytes. An order to a proxy takes
/// microseconds, so a further order needs more.
inline constexpr uint64_t bytes_of_a_block = 64 * 1024, bytes_of_an_order = 512 * 1024;

/// Returns the number of thread blocks for a transfer: one for each `each` bytes, at least one, at most
/// `most`.
uint32_t blocks_for(uint64_t bytes, uint32_t most, uint64_t each = bytes_of_a_block);

/// Gives channels to all transfers. Transfers share channels only when they are on one lane on either side,
/// so that both ends come to them one after the other in the same order.
/// \param most_blocks  the most blocks of a transfer
ChannelAssignment assign_channels(const host::Concrete& expanded, uint32_t most_blocks);

}  // namespace chorale::hostrun
