/// \file
/// Removes packets that a block sends to itself.
#pragma once

#include <vector>

#include "steps.hpp"

namespace chorale::lowering {

/// Lets a sum read plain memory directly when a block packs it into its own rank's packets and adds them to
/// others in the next step. The sum adds the plain memory in the packets' place, and the packing is left
/// out.
///
/// The result is the same. The packets are used nowhere else in `blocks`, which are all blocks of the rank,
/// and no operation reads a peer's packets. The plain memory is read later than before, but the block tells
/// nobody anything between the two steps: a writer could only learn that it may write there from what the
/// block does after the second. And the sum does not write there, except to the very places that it has
/// read.
void keep_own_packets(std::vector<std::vector<RecordedStep>>& blocks, PacketForm form);

}  // namespace chorale::lowering
