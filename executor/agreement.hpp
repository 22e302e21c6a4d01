/// \file
/// What ranks tell each other before they bind.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend.hpp"
#include "launch_count.hpp"
#include "world/thrown.hpp"

namespace chorale {

/// Collective: all ranks are about to bind the same.
/// \param launches   numbered here at the first time
/// \param evictable  bindings that this rank could do without, see Bindings
/// \param cannot     why this rank cannot, whatever the others do; nothing if it can
/// \return those that all ranks could do without, in rank 0's order
/// \throws RunError mismatch on all ranks if one of them is about to bind something else, or deadlock if one
///         launches what this one has to bind; else, if one of them cannot, as agree_on_use()
std::vector<uint64_t> agree_on_binding(World& world, const Plan& plan, const Call& call,
                                       LaunchCount& launches, const std::vector<uint64_t>& evictable,
                                       const std::optional<world::Thrown>& cannot = std::nullopt);

/// Collective. Runs `step`: what one rank cannot do is refused on all ranks.
/// \throws UsageError or RunError on all ranks, as the lowest rank that threw something; but a UsageError of
///         this rank stays as it is
void agree_on_use(World& world, const std::function<void()>& step);

}  // namespace chorale
