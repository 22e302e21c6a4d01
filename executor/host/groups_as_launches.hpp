/// \file
/// Groups of transfers as launches of plans of thread blocks.
#pragma once

#include <cstdint>

#include "launches.hpp"

namespace chorale::hostrun {

/// Carries via the mover `plan` become launches. What a rank sends is copied side by side into a room; a plan
/// that is made here takes it to the rooms of those that receive it, all at once; and from there it is copied
/// to where it belongs. All ranks take part in a launch: so the n-th such groups of all ranks have to
/// exchange with each other alone.
/// \param made    as expand_movers() gives it; gets the rooms, as tensors
/// \param plans   gets the plans
/// \param blocks  the most of a transfer
/// \throws UsageError  where groups do not fit together
void groups_as_launches(const host::Schedule&, host::Concrete& made, BlockPlans& plans, uint32_t blocks);

}  // namespace chorale::hostrun
