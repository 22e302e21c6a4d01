#pragma once
/// \file
/// Why an execution does not come to its end.

#include "findings.hpp"
#include "player.hpp"

namespace chorale::proof {

/// Tells what the blocks wait for that an execution has left behind.
void tell_stuck(const Player&, Findings&);

}  // namespace chorale::proof
