#pragma once
/// \file
/// The rewrites of the compiler. Each rewrite is one function, listed in passes.def, and returns whether it
/// changed the plan.

#include "chorale/compile_options.hpp"
#include "chorale/plan.hpp"

namespace chorale::pass {

#define CHORALE_REWRITE(name, summary) bool name(Plan&, const CompileOptions&);
#include "chorale/passes.def"

}  // namespace chorale::pass
