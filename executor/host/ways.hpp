/// \file
/// Which channels a carried transfer uses. A carry is a transfer that thread blocks move (via the movers
/// kernel, staged and port), not a copy engine; its two ends meet on the channels of a link between two
/// ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "chorale/host/concrete.hpp"

namespace chorale::hostrun {

/// The channels of one transfer: it has equally many thread blocks on either side, and each block a channel
/// of its own, from `channel` on.
struct Way {
  uint32_t channel = 0, blocks = 0;  ///< 0 blocks: it is not carried
  host::Box to;                      ///< the receiver's
};

/// What all transfers via one of these movers need of the links between ranks.
struct Links {
  host::Mover mover = host::Mover::kernel;
  uint32_t channels = 0;     ///< the most between two ranks
  uint64_t share_bytes = 0;  ///< the most that a block moves
};

struct Ways {
  std::vector<Way> of_pair;  ///< by position in Concrete::pairs
  std::vector<Links> links;  ///< one for each mover in use; the same on all ranks

  /// Blocks of all carries of a rank that may run at a time: the most of each lane.
  std::vector<uint64_t> blocks_by_lane(const host::Concrete&, uint32_t rank) const;
};

/// A further thread block is not worth it for less than this; nor is a further order to a proxy, which takes
/// microseconds.
inline constexpr uint64_t bytes_of_a_block = 64 * 1024, bytes_of_an_order = 512 * 1024;

/// Thread blocks for a transfer: one for each `each` bytes, at least one, at most `most`.
uint32_t blocks_for(uint64_t bytes, uint32_t most, uint64_t each = bytes_of_a_block);

/// Transfers share channels only where both ends come to them one after the other in the same order, since
/// they are on one lane on either side.
/// \param most_blocks  of a transfer
Ways find_ways(const host::Concrete& expanded, uint32_t most_blocks);

}  // namespace chorale::hostrun
