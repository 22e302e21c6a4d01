/// \file
/// Writes the report of a stopped run, which tells which block waits for which rank.
#pragma once

#include <string>
#include <vector>

#include "chorale/plan.hpp"
#include "stuck.hpp"

namespace chorale::lowering {

/// Returns the line of a report for one block of a run of `plan`:
///   rank 3 block 0 op 17 (ring.cpp:42) wait on memory channel 2 from rank 2: expected 5, seen 4
std::string line(const Plan& plan, const Stuck& stuck);

/// Tells whether a report covers all ranks.
enum class Ranks {
  all,   ///< a rank without blocks in the report has ended, or never came
  some,  ///< nothing is known of the other ranks: they are in processes of their own
};

/// Returns the lines of the blocks that had not ended, "" if there are none. Blocks that others wait for come
/// first. Lines that `said` contains are left out.
std::string describe(const std::vector<Stuck>& stuck, Ranks ranks, const std::string& said = "");

}  // namespace chorale::lowering
