#pragma once
/// \file
/// These functions are the half of the structure check that looks at operations.

#include "../plan/report.hpp"

namespace chorale {

/// Checks the ids, list lengths and attributes of every operation.
/// \return true if there are barriers
bool check_operations(const Plan&, Report&);

/// Checks that every barrier has exactly as many thread blocks as it counts, and that each arrives equally
/// often.
void check_barriers(const Plan&, Report&);

}  // namespace chorale
