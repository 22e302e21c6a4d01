/// \file
/// Gives one numbering to plans that differ only in the ids of thread blocks, channels, remote buffers,
/// semaphores and barriers.
#pragma once

#include "chorale/plan.hpp"

namespace chorale::tools {

/// Numbers thread blocks by position, and channels and remote buffers, of ranks and of thread blocks, and
/// semaphores and barriers of ranks in an order that depends on nothing but their use. Channels of two ranks
/// are paired by position (the n-th one to a peer with the peer's n-th one back), so the n-th channels of
/// both ends move together. Ids that name nothing stay.
void canonicalise(Plan&);

}  // namespace chorale::tools
