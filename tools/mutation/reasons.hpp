#pragma once
/// \file
/// Why a mutant is right all the same.

#include "campaign.hpp"

namespace chorale::mutation {

/// `values`: its blocks do something else, and yet the proof of values holds. `path`: they touch the same
/// memory in the same order, and whatever the mistake no longer orders is ordered by other operations.
/// `nothing`: it ordered nothing that needs an order. `unexplained`: none of these could be shown.
/// \param mutant  in which no check found anything
Reason find_reason(const Plan& original, const Plan& mutant, const Mutant& of);

}  // namespace chorale::mutation
