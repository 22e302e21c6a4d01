/// \file
/// What a stopped run says: who waits for whom.
#pragma once

#include <string>
#include <vector>

#include "chorale/plan.hpp"
#include "stuck.hpp"

namespace chorale::interpreter {

/// A line for each block that had not ended, those that the others wait for first; "" if there is none.
///   rank 3 block 0 op 17 (ring.cpp:42) wait on memory channel 2 from rank 2: expected 5, seen 4
std::string describe(const Plan& plan, const std::vector<Stuck>& stuck);

}  // namespace chorale::interpreter
