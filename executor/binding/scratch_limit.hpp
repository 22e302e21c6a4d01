/// \file
/// A binding whose scratch exceeds Config::scratch is refused here.
#pragma once

#include <cstdint>

#include "backend.hpp"

namespace chorale {

/// Checks that a call's scratch is within Call::scratch, unless that is 0.
/// \param bytes  the scratch that one rank would take for this call
/// \param kept   the scratch of bindings that cannot go, beside it
/// \throws RunError resources if the sum is more. All ranks throw it, because they have the same numbers
void require_scratch(const Plan& plan, const Call& call, uint64_t bytes, uint64_t kept = 0);

}  // namespace chorale
