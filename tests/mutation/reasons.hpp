#pragma once
/// \file
/// Finds the reason why a mutant is right all the same.

#include "campaign.hpp"

namespace chorale::mutation {

/// Returns one of four reasons. `values`: its blocks do something else, and yet the proof of values holds.
/// `path`: they touch the same memory in the same order, and other operations order what the mutant no longer
/// orders. `nothing`: the changed operation ordered nothing that needs an order. `unexplained`: none of these
/// could be shown.
/// \param mutant  a mutant in which no check found anything
Reason find_reason(const Plan& original, const Plan& mutant, const Mutant& of);

}  // namespace chorale::mutation
