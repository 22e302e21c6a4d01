#pragma once

#include "chorale/schedule/schedule.hpp"

namespace chorale::schedule {

/// Turns tensors into windows if peers access them. These are received tensors whose mover writes at the
/// receiver, and sent tensors whose mover reads at the sender. `automatic` counts as ce_put.
void place(Schedule&);

}  // namespace chorale::schedule
