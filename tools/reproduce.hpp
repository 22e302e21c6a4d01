/// \file
/// Finds a schedule on the CPU that shows a proof's finding.
#pragma once

#include <cstdint>

#include "chorale/adversary.hpp"
#include "chorale/finding.hpp"

namespace chorale::tools {

/// Holds the result of the search. A verdict other than ok is one that the finding predicts.
struct Reproduction {
  uint64_t schedules = 0;  ///< the number of schedules that were tried
  Verdict verdict;         ///< the verdict of the last schedule
  bool out_of_place = false;
};

/// Tries schedules of the adversarial machine with seeds 0, 1, ..., as `chorale run --adversarial` does. It
/// tries fewer than `schedules` if the plan's schedules are long. How many depends only on the plan.
Reproduction reproduce(const Plan&, const Finding&, uint64_t schedules);

}  // namespace chorale::tools
