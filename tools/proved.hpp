/// \file
/// Says in words what was proved about a plan.
#pragma once

#include <string>
#include <vector>

#include "chorale/plan.hpp"
#include "chorale/target.hpp"

namespace chorale::tools {

/// Returns "proved: ..." with its bounds, and a line "not proved: ..." for each part that the proofs left
/// out.
/// \param plan   a plan without findings
/// \param allow  the proofs that were left out
std::string proved_words(const Plan& plan, Target target, const std::vector<std::string>& allow);

}  // namespace chorale::tools
