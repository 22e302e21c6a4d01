#pragma once
/// \file
/// The lane style `ahead` tells a peer before the first turn what it has to know to go on. So no turn waits
/// for the peer's own order.

#include "regions.hpp"
#include "turn.hpp"

namespace chorale::host {

/// Lowers a loop with transfers. Slices leave on the lane comm and arrive on the lane arrive; the lane comp
/// is for compute, if there is any. With ce_put a rank says ahead that there is room for what comes; with
/// ce_get it says which of its own slices a peer may read. A slice that a turn computes cannot be offered
/// before it is there, so only room for it can be.
///
/// \param options  have ce_put or ce_get; all transfers are between pairs, and not around a ring
void lower_ahead(Schedule&, TurnMaker&, const Region&, const Slices&, const Lowering& options);

}  // namespace chorale::host
