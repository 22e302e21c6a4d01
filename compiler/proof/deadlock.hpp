#pragma once
/// \file
/// tell_stuck() explains why an execution does not end.

#include "compiler/proof/execution/findings.hpp"
#include "compiler/proof/execution/symbolic_executor.hpp"

namespace chorale::proof {

/// Adds findings that say for what each stuck block waits, after an execution that did not end.
void tell_stuck(const SymbolicExecutor&, Findings&);

}  // namespace chorale::proof
