#pragma once
/// \file
/// What would order two accesses that nothing orders.

#include "history.hpp"

namespace chorale::proof {

/// Changes of the plan, in words. Each was made and played: the first access then comes before the second
/// one, and the plan to its end.
/// \param finding  a race with two events that `history` has
std::vector<std::string> list_remedies(const History& history, const Finding& finding);

}  // namespace chorale::proof
