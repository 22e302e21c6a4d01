/// \file
/// Ways: over which channels the two ends of a carried transfer meet.
#pragma once

#include <cstdint>
#include <vector>

#include "chorale/host/concrete.hpp"

namespace chorale::hostrun {

/// Of one transfer: as many thread blocks on either side, each with a channel of its own.
struct Way {
  uint32_t channel = 0, blocks = 0;  ///< 0 blocks: it is not carried
  host::Box to;                      ///< the receiver's
};

/// Of all transfers via one mover that is no copy engine.
struct Links {
  host::Mover mover = host::Mover::kernel;
  uint32_t channels = 0;     ///< the most between two ranks
  uint64_t share_bytes = 0;  ///< the most that a block moves
};

struct Ways {
  std::vector<Way> of_pair;  ///< as Concrete::pairs
  std::vector<Links> links;  ///< those there are, the same on all ranks

  /// Blocks of all carries of a rank that may run at a time: the most of each lane.
  std::vector<uint64_t> blocks_by_lane(const host::Concrete&, uint32_t rank) const;
};

/// Less is not worth another thread block; nor, via a proxy, another order, which takes microseconds.
inline constexpr uint64_t bytes_of_a_block = 64 * 1024, bytes_of_an_order = 512 * 1024;

/// Thread blocks for a transfer: one for each `each` bytes, at least one, at most `most`.
uint32_t blocks_for(uint64_t bytes, uint32_t most, uint64_t each = bytes_of_a_block);

/// Transfers share channels only where both ends come to them one after the other in the same order, since
/// they are on one lane on either side.
/// \param most_blocks  of a transfer
Ways find_ways(const host::Concrete& expanded, uint32_t most_blocks);

}  // namespace chorale::hostrun
