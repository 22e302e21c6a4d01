/// \file
/// Writes the report of a stopped run, which says which block waits for which rank.
#pragma once

#include <string>
#include <vector>

#include "chorale/plan.hpp"
#include "stuck.hpp"

namespace chorale::fibers {

/// Returns a report's line for one block of a run of `plan`:
///   rank 3 block 0 op 17 (ring.cpp:42) wait on memory channel 2 from rank 2: expected 5, seen 4
std::string line(const Plan& plan, const Stuck& stuck);

/// Says whether a report covers all ranks.
enum class Ranks {
  all,   ///< a rank without blocks in the report has ended, or never launched
  some,  ///< nothing is known about the other ranks, which are in other processes
};

/// Returns the lines of the blocks that have not ended, or "" if there are none. Blocks for which others wait
/// come first. Lines that `said` already contains are left out.
std::string describe(const std::vector<Stuck>& stuck, Ranks ranks, const std::string& said = "");

}  // namespace chorale::fibers
