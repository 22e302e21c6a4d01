#pragma once
/// \file
/// Explains why an execution does not come to its end.

#include "findings.hpp"
#include "symbolic_executor.hpp"

namespace chorale::proof {

/// Adds findings that say what each stuck block waits for, after an execution that did not end.
void tell_stuck(const SymbolicExecutor&, Findings&);

}  // namespace chorale::proof
