/// \file
/// These functions check that all ranks bind the same call, and report one rank's error to all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "backend.hpp"
#include "executor/system/thrown.hpp"
#include "launch_count.hpp"

namespace chorale {

/// Checks that all ranks are about to bind the same call; collective.
/// \param launches   this rank's count; the first call numbers it
/// \param evictable  the bindings that this rank can drop, see Bindings
/// \param cannot     the reason if this rank cannot bind; nothing if it can
/// \return the bindings that all ranks can drop, in rank 0's order
/// \throws RunError, on all ranks: mismatch if a rank is about to bind another call; deadlock if a rank has
///         already launched the call that this rank has to bind; otherwise, if a rank cannot bind, as
///         agree_on_use()
std::vector<uint64_t> agree_on_binding(World& world, const Plan& plan, const Call& call,
                                       LaunchCount& launches, const std::vector<uint64_t>& evictable,
                                       const std::optional<system::Thrown>& cannot = std::nullopt);

/// Runs `step`, and throws on all ranks if it throws on one; collective.
/// \throws UsageError or RunError, on all ranks: the error of the lowest rank that threw. On a rank that
///         threw a UsageError, its own UsageError
void agree_on_use(World& world, const std::function<void()>& step);

/// Checks that a call's scratch is within Call::scratch. If that is 0, there is no limit.
/// \param bytes  the bytes of scratch that one rank would take for this call
/// \param kept   the bytes of scratch of bindings that cannot be dropped
/// \throws RunError resources if the sum is above the limit. All ranks throw it, because they have the same
///         numbers
void require_scratch(const Plan& plan, const Call& call, uint64_t bytes, uint64_t kept = 0);

}  // namespace chorale
