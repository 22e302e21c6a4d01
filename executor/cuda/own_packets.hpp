/// \file
/// What a block sends to itself as packets.
#pragma once

#include <vector>

#include "steps.hpp"

namespace chorale::cuda {

/// Where a block packs a piece of plain memory into its own rank's packets and the next thing that it does is
/// to add them to others, they are added from the plain memory, in their place, and the packing is left out.
///
/// Nobody can tell. The packets are used nowhere else in `blocks`, which are all of the rank, and no
/// operation reads a peer's. The plain memory is read later than before, but between the two steps the block
/// tells nobody anything: who was free to write there after the first could only know it from what the block
/// does after the second. And the sum does not write there, but for the very places that it has read.
void keep_own_packets(std::vector<std::vector<Step>>& blocks, PacketForm form);

}  // namespace chorale::cuda
