#pragma once
/// \file
/// Decides whether a read that races with a write comes too late, for data that is gone by then.

#include "history.hpp"

namespace chorale::proof {

/// Returns whether the second event, a read, is meant for the data that the first one overwrites. Then the
/// read has to come first. This holds if both come after an earlier write of the same place which nobody else
/// reads in time, and somebody else reads the new data: nobody would write data that nobody reads.
/// \param finding  a race with two events of one launch that `history` has
bool reads_what_was_before(const History& history, const Finding& finding);

}  // namespace chorale::proof
