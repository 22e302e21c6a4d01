#pragma once
/// \file
/// find_remedies() suggests changes that would order two accesses that nothing orders.

#include <string>
#include <vector>

#include "history.hpp"

namespace chorale::proof {

/// Returns whether `end` is the application's next action after a launch that ends while `other` of the same
/// launch is still running. Then `other` must come first.
bool ends_before(const ProofEvent& end, const ProofEvent& other);

/// Holds what would order two accesses.
struct RemedyList {
  std::vector<std::string> remedies;  ///< changes of the plan, in words
  /// Says that a wait which would order them exists in another thread block, which needs it itself; empty if
  /// there is none.
  std::string misplaced;
  std::string wrong_order;  ///< see Witness
  bool swapped = false;     ///< the changes make the second access come before the first one
};

/// Returns changes of the plan. Each change was made and executed. With it the plan ends, and the
/// first access comes before the second one, or the second before the first if ends_before() holds or if
/// fewer outputs are wrong then.
/// \param finding  a race with two events that `history` has
RemedyList find_remedies(const History& history, const Finding& finding);

}  // namespace chorale::proof
