#pragma once
/// \file
/// The half of the structure check that looks at operations.

#include "report.hpp"

namespace chorale {

/// Ids, list lengths and attributes of every operation.
/// True if there are barriers.
bool check_operations(const Plan&, Report&);

/// Every barrier has exactly as many thread blocks as it counts, and each arrives equally often.
void check_barriers(const Plan&, Report&);

}  // namespace chorale
