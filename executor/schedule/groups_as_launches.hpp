/// \file
/// Turns groups of transfers into launches of plans of thread blocks.
#pragma once

#include <cstdint>

#include "launches.hpp"

namespace chorale::hostrun {

/// Turns carries via the mover `plan` into launches. A rank copies all that it sends side by side into a
/// room. A plan made here takes it to the rooms of the receivers, all at once. Each receiver copies it from
/// its room to where it belongs. All ranks take part in a launch, so the n-th such groups of all ranks must
/// exchange with each other alone.
/// \param made    as expand_movers() gives it; gets the rooms, as tensors
/// \param plans   gets the plans
/// \param blocks  the most thread blocks of a transfer
/// \throws UsageError if groups do not fit together
void groups_as_launches(const host::Schedule&, host::Concrete& made, BlockPlans& plans, uint32_t blocks);

}  // namespace chorale::hostrun
