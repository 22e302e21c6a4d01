/// \file
/// Gives the same numbering to plans that differ only in the ids of thread blocks, channels, remote buffers,
/// semaphores and barriers.
#pragma once

#include "chorale/plan.hpp"

namespace chorale::tools {

/// Numbers thread blocks by position. Channels and remote buffers (of ranks and of thread blocks), and
/// semaphores and barriers of ranks, get numbers that depend only on their use. Channels of two ranks are
/// paired by position: the n-th channel to a peer belongs to the peer's n-th channel back. So the n-th
/// channels of both ends move together. Ids that name nothing stay.
void canonicalise(Plan&);

}  // namespace chorale::tools
