#pragma once
/// \file
/// The stream style `ahead` posts credits to peers before the first turn. Therefore no turn waits until a
/// peer reaches the same turn.

#include "regions.hpp"
#include "turn.hpp"

namespace chorale::schedule {

/// Lowers a loop with transfers. Slices are sent on the stream `comm` and received on the stream `arrive`.
/// The stream `comp` is for compute, if there is any. With ce_put, a rank says before the loop that its
/// memory is free for the slices to come. With ce_get, it says which of its own slices a peer may read. A
/// slice that a turn computes cannot be offered before it exists, so only its memory can be.
///
/// \param options  must have ce_put or ce_get; all transfers must be between pairs and not around a ring
void lower_ahead(Schedule&, TurnMaker&, const Region&, const Slices&, const Lowering& options);

}  // namespace chorale::schedule
