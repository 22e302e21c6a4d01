#pragma once
/// \file
/// For each kind of finding, one function selects what to show of a history.

#include "slice.hpp"

namespace chorale::proof {

void explain_race(const History&, const Finding&, Slice&, Witness&);
/// Explains a cycle of waits, or a wait that nothing answers.
void explain_deadlock(const History&, const Finding&, Slice&, Witness&);
void explain_value(const History&, const Finding&, Slice&, Witness&);

}  // namespace chorale::proof
