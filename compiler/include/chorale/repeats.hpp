#pragma once
/// \file
/// A repeat is an operation that does again what the one before it did.

#include "chorale/diagnostic.hpp"
#include "chorale/plan.hpp"

namespace chorale {

/// Finds operations that repeat the one before them in their thread block. They write the same value to the
/// same bytes. That is superfluous, and formally a race, but harmless. These are warnings, because the proofs
/// accept such operations.
/// \param plan  without findings of check()
Diagnostics find_repeats(const Plan& plan);

}  // namespace chorale
