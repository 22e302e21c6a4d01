/// \file
/// The refusal of a binding whose scratch is beyond Config::scratch.
#pragma once

#include <cstdint>

#include "backend.hpp"

namespace chorale {

/// \param bytes  of scratch that one rank would take for this call
/// \param kept   of bindings that cannot go, beside it
/// \throws RunError resources if these are more than Call::scratch. All ranks throw it, as they have the same
/// numbers
void require_scratch(const Plan& plan, const Call& call, uint64_t bytes, uint64_t kept = 0);

}  // namespace chorale
