#pragma once
/// \file
/// list_remedies() suggests changes that would order two accesses that nothing orders.

#include <string>
#include <vector>

#include "history.hpp"

namespace chorale::proof {

/// Returns whether `end` is the application's next action after a launch that ends while `other` of the same
/// launch is still running. Then `other` must come first.
bool ends_before(const ProofEvent& end, const ProofEvent& other);

/// Returns changes of the plan, in words. Each change was made and executed. With it the plan ends, and the
/// first access comes before the second one, or the second before the first if ends_before() or
/// reads_what_was_before() holds.
/// \param finding  a race with two events that `history` has
std::vector<std::string> list_remedies(const History& history, const Finding& finding);

}  // namespace chorale::proof
