/// \file
/// Says in words what was proved of a plan.
#pragma once

#include <string>
#include <vector>

#include "chorale/plan.hpp"
#include "chorale/target.hpp"

namespace chorale::tools {

/// Returns "proved: ..." with its bounds, and a line "not proved: ..." for each part that the proofs did not
/// look at.
/// \param plan   a plan in which no check and no proof found anything
/// \param allow  the proofs that were left out
std::string proved_words(const Plan& plan, Target target, const std::vector<std::string>& allow);

}  // namespace chorale::tools
