#pragma once
/// \file
/// What to show of each kind of finding, from a history of its execution.

#include "slice.hpp"

namespace chorale::proof {

void explain_race(const History&, const Finding&, Slice&, Witness&);
/// Of a cycle, and of a wait that nothing answers.
void explain_deadlock(const History&, const Finding&, Slice&, Witness&);
void explain_value(const History&, const Finding&, Slice&, Witness&);

}  // namespace chorale::proof
