#pragma once

#include "chorale/schedule/schedule.hpp"

namespace chorale::schedule {

/// Turns a tensor into a window if peers access it. Peers access a received tensor if the mover writes at the
/// receiver, and a sent tensor if the mover reads at the sender. `automatic` counts as ce_put.
void place(Schedule&);

}  // namespace chorale::schedule
