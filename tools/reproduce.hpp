/// \file
/// Finds a schedule that shows a proof's finding on the CPU.
#pragma once

#include <cstdint>

#include "chorale/adversary.hpp"
#include "chorale/proof.hpp"

namespace chorale::tools {

/// The result of the search. A verdict that is not ok is one that the finding predicts.
struct Reproduction {
  uint64_t schedules = 0;  ///< the number that was tried
  Verdict verdict;         ///< the last schedule's
  bool out_of_place = false;
};

/// Tries schedules of the adversarial machine with seeds 0, 1, ..., as `chorale run --adversarial` does.
/// It tries fewer than `schedules` if the plan's schedules are long. Their number depends only on the plan.
Reproduction reproduce(const Plan&, const Finding&, uint64_t schedules);

}  // namespace chorale::tools
