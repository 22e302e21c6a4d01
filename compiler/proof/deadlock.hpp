#pragma once
/// \file
/// Explains why an execution does not come to its end.

#include "findings.hpp"
#include "player.hpp"

namespace chorale::proof {

/// Adds findings that say what each stuck block waits for, after an execution that did not end.
void tell_stuck(const Player&, Findings&);

}  // namespace chorale::proof
