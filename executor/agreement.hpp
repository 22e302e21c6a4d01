/// \file
/// What ranks tell each other before they bind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend.hpp"
#include "launch_count.hpp"

namespace chorale {

/// Collective: all ranks are about to bind the same.
/// \param launches   numbered here at the first time
/// \param evictable  bindings that this rank could do without, see Bindings
/// \return those that all ranks could do without, in rank 0's order
/// \throws RunError mismatch on all ranks if one of them is about to bind something else, or deadlock if one
///         launches what this one has to bind
std::vector<uint64_t> agree_on_binding(World& world, const Plan& plan, const Call& call,
                                       LaunchCount& launches, const std::vector<uint64_t>& evictable);

/// Collective. What one rank cannot do is refused on all ranks.
/// \param mine  why this rank cannot; "" if it can
/// \throws UsageError on all ranks, with this rank's words if it has some, else with those of another rank
void agree_on_use(World& world, const std::string& mine);

}  // namespace chorale
