#pragma once
/// \file
/// Of a read that races with a write: whether it comes too late, for data that is gone then.

#include "history.hpp"

namespace chorale::proof {

/// Whether the second event, a read, is for what was there before the first one overwrites it: then it has to
/// come before the first. That is so if both are behind an earlier write of the place which nobody else reads
/// in time, and the new data is read by somebody else: who would write what nobody reads?
/// \param finding  a race with two events of one launch that `history` has
bool reads_what_was_before(const History& history, const Finding& finding);

}  // namespace chorale::proof
