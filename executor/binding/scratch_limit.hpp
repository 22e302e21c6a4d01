/// \file
/// require_scratch() refuses a binding whose scratch exceeds Config::scratch.
#pragma once

#include <cstdint>

#include "backend.hpp"

namespace chorale {

/// Checks that a call's scratch is within Call::scratch. If that is 0, there is no limit.
/// \param bytes  the bytes of scratch that one rank would take for this call
/// \param kept   the bytes of scratch of bindings that cannot be dropped
/// \throws RunError resources if the sum is above the limit. All ranks throw it, because they have the same
///         numbers
void require_scratch(const Plan& plan, const Call& call, uint64_t bytes, uint64_t kept = 0);

}  // namespace chorale
