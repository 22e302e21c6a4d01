#pragma once
/// \file
/// Operations that do once more what the one before them did.

#include <optional>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "chorale/plan.hpp"
#include "chorale/proof.hpp"

namespace chorale::proof {

/// A plan without the operations that find_repeats() lists. All launches of the two compute the same, and
/// every order that holds in the one holds in the other: repeats.cpp says why.
struct WithoutRepeats {
  Plan plan;
  std::vector<OpPlace> left_out;

  /// Gives findings the places that operations have in the whole plan.
  void put_back(std::vector<Finding>&) const;
};

/// Returns nothing if no operation repeats another.
std::optional<WithoutRepeats> leave_out_repeats(const Plan&);

}  // namespace chorale::proof
