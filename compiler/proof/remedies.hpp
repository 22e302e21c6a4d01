#pragma once
/// \file
/// Suggests changes that would order two accesses that nothing orders.

#include <string>
#include <vector>

#include "history.hpp"

namespace chorale::proof {

/// Returns whether `end` is the application's next action after a launch that ends while `other` of the same
/// launch still goes on. Then `other` has to come first.
bool ends_before(const ProofEvent& end, const ProofEvent& other);

/// Returns changes of the plan, in words. Each change was made and played. With it the plan comes to its end,
/// and the first access comes before the second one, or the second before the first if ends_before() or
/// reads_what_was_before() holds.
/// \param finding  a race with two events that `history` has
std::vector<std::string> list_remedies(const History& history, const Finding& finding);

}  // namespace chorale::proof
