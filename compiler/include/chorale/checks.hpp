#pragma once
/// \file
/// The checks of the compiler. Each check is one function, listed in passes.def.

#include "chorale/diagnostic.hpp"
#include "chorale/plan.hpp"

namespace chorale {

/// Runs the checks in order. Stops after the first check with findings and returns all findings of that
/// check.
Diagnostics check(const Plan&);

namespace pass {
#define CHORALE_CHECK(name, summary) void name(const Plan&, Diagnostics&);
#include "chorale/passes.def"
}  // namespace pass

}  // namespace chorale
