/// \file
/// A schedule that shows on the CPU what a proof has found.
#pragma once

#include <cstdint>

#include "chorale/adversary.hpp"
#include "chorale/proof.hpp"

namespace chorale::tools {

/// What came of the search. Verdicts that are not ok are only those that the finding lets one expect.
struct Reproduction {
  uint64_t schedules = 0;  ///< so many were tried
  Verdict verdict;         ///< of the last
  bool out_of_place = false;
};

/// Tries schedules of the adversarial machine with seeds 0, 1, ..., as `chorale run --adversarial` does.
/// Fewer than `schedules` of plans whose schedules are long: it depends on nothing but the plan.
Reproduction reproduce(const Plan&, const Finding&, uint64_t schedules);

}  // namespace chorale::tools
