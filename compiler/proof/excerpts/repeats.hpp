#pragma once
/// \file
/// Operations that only repeat the one before them are found and left out here.

#include <optional>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "chorale/finding.hpp"
#include "chorale/plan.hpp"

namespace chorale::proof {

/// Holds a plan without the operations that find_repeats() lists. All launches of the two plans compute the
/// same, and every order in one holds in the other: repeats.cpp says why.
struct WithoutRepeats {
  Plan plan;
  std::vector<OpPlace> left_out;

  /// Changes the places in findings back to places in the whole plan.
  void put_back(std::vector<Finding>&) const;
};

/// Returns the plan without its repeats, or nothing if no operation repeats another.
std::optional<WithoutRepeats> leave_out_repeats(const Plan&);

}  // namespace chorale::proof
