#pragma once
/// \file
/// These functions are the part of the structure check that looks at operations.

#include "compiler/plan/report.hpp"

namespace chorale {

/// Checks the ids, list lengths and attributes of every operation.
/// \return true if there are barriers
bool check_operations(const Plan&, Report&);

/// Checks that as many thread blocks use a barrier as it counts, and that all of them arrive equally often.
void check_barriers(const Plan&, Report&);

}  // namespace chorale
