#pragma once

#include "launches.hpp"

namespace chorale::schedule_run {

/// Turns transfers via the mover `plan` into launches. Each rank copies all that it sends into one contiguous
/// staging buffer. A plan made here moves it to the receivers' staging, all transfers in parallel. Each
/// receiver copies it from there to its destination. All ranks take part in a launch, so the n-th groups of
/// all ranks must exchange only with each other.
/// \param made as expand_movers() returns it; gets the staging buffers as tensors
/// \param plans gets the plans
/// \throws UsageError if groups do not fit together
void groups_as_launches(const schedule::Schedule&, schedule::Concrete& made, BlockPlans& plans);

}  // namespace chorale::schedule_run
