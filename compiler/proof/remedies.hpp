#pragma once
/// \file
/// What would order two accesses that nothing orders.

#include <string>
#include <vector>

#include "history.hpp"

namespace chorale::proof {

/// Whether a launch ends, of which `end` is what the application does next, while `other` of the same launch
/// still goes on: then `other` is what has to come first.
bool ends_before(const ProofEvent& end, const ProofEvent& other);

/// Changes of the plan, in words. Each was made and played: the first access then comes before the second
/// one, or where ends_before() or reads_what_was_before() the second before the first, and the plan to its
/// end. \param finding  a race with two events that `history` has
std::vector<std::string> list_remedies(const History& history, const Finding& finding);

}  // namespace chorale::proof
