/// \file
/// What a stopped run says: who waits for whom.
#pragma once

#include <string>
#include <vector>

#include "chorale/plan.hpp"
#include "stuck.hpp"

namespace chorale::interpreter {

/// On a block of a run of `plan`:
///   rank 3 block 0 op 17 (ring.cpp:42) wait on memory channel 2 from rank 2: expected 5, seen 4
std::string line(const Plan& plan, const Stuck& stuck);

/// Whose blocks there are in a report.
enum class Ranks {
  all,   ///< a rank that has none there had ended, or never came
  some,  ///< of the others nothing is known: they are in processes of their own
};

/// The lines of blocks that had not ended, those that the others wait for first, without what has been said
/// before; "" if there is none.
std::string describe(const std::vector<Stuck>& stuck, Ranks ranks, const std::string& said = "");

}  // namespace chorale::interpreter
