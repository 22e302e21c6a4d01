#pragma once
/// \file
/// Finds the reason why a mutant is nevertheless right.

#include "campaign.hpp"

namespace chorale::mutation {

/// Returns one of four reasons. `values`: its blocks do something else, but the proof of values holds.
/// `path`: they touch the same memory in the same order, and other operations order what the mutant no longer
/// orders. `nothing`: the changed operation ordered nothing that needs an order. `unexplained`: none of these
/// could be shown.
/// \param mutant  a mutant without findings
Reason find_reason(const Plan& original, const Plan& mutant, const Mutant& of);

}  // namespace chorale::mutation
