/// \file
/// Removes packets that a block sends to itself.
#pragma once

#include <vector>

#include "steps.hpp"

namespace chorale::lowering {

/// Makes a sum read plain memory directly when a block packs it into its own rank's packets and adds them to
/// others in the next step. The sum adds the plain memory in place of the packets, and the packing is
/// removed.
///
/// The result is the same. The packets are used nowhere else in `blocks`, which are all blocks of the rank,
/// and no operation reads a peer's packets. The plain memory is read later than before, but the block signals
/// nothing between the two steps. So a writer can learn only from the block's actions after the sum that it
/// may write there. And the sum itself writes there only to the same places that it has already read.
void keep_own_packets(std::vector<std::vector<RecordedStep>>& blocks, PacketForm form);

}  // namespace chorale::lowering
