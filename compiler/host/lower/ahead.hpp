#pragma once
/// \file
/// The lane style ahead: what a peer has to know before it can go on is said before the first turn, so that
/// no turn waits for the peer's own order.

#include "regions.hpp"
#include "turn.hpp"

namespace chorale::host {

/// Of a loop with transfers: lanes comm, on which slices leave, arrive and, if there is compute, comp. With
/// ce_put a rank says ahead that there is room for what comes; with ce_get, what of its own may be read. What
/// a turn computes cannot be offered before it is there: then only room can.
///
/// \param options  with ce_put or ce_get; all transfers are between pairs, and not around a ring
void lower_ahead(Schedule&, TurnMaker&, const Region&, const Slices&, const Lowering& options);

}  // namespace chorale::host
