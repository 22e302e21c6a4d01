#pragma once
/// \file
/// reads_what_was_before() decides whether a read that races with a write comes too late, after its data is
/// overwritten.

#include "history.hpp"

namespace chorale::proof {

/// Returns whether the second event, a read, is meant for the data that the first event overwrites. Then the
/// read must come first. This holds if both come after an earlier write of the same memory whose data nobody
/// else reads in time, and if somebody else reads the new data. The reason is that nobody would write data
/// that nobody reads.
/// \param finding  a race with two events of one launch that `history` has
bool reads_what_was_before(const History& history, const Finding& finding);

}  // namespace chorale::proof
