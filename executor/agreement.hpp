/// \file
/// What ranks tell each other before they bind.
#pragma once

#include <cstdint>
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

}  // namespace chorale
