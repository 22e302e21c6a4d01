/// \file
/// Ranks agree here on what they are about to bind.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "../system/thrown.hpp"
#include "backend.hpp"
#include "launch_count.hpp"

namespace chorale {

/// Collective: checks that all ranks are about to bind the same call.
/// \param launches   gets its number here the first time
/// \param evictable  bindings that this rank could do without, see Bindings
/// \param cannot     why this rank cannot bind, whatever the others do; nothing if it can
/// \return the bindings that all ranks could do without, in rank 0's order
/// \throws RunError mismatch on all ranks if one of them is about to bind something else, or deadlock if one
///         launches what this one has to bind; else, if one of them cannot, as agree_on_use()
std::vector<uint64_t> agree_on_binding(World& world, const Plan& plan, const Call& call,
                                       LaunchCount& launches, const std::vector<uint64_t>& evictable,
                                       const std::optional<world::Thrown>& cannot = std::nullopt);

/// Collective: runs `step`, and throws on all ranks if it throws on one.
/// \throws UsageError or RunError on all ranks: the error of the lowest rank that threw; but a UsageError of
///         this rank stays as it is
void agree_on_use(World& world, const std::function<void()>& step);

}  // namespace chorale
