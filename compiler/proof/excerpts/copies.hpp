#pragma once
/// \file
/// leave_out_copies() removes thread blocks that do the same as others at other chunks, to make proofs
/// faster. Usually they are the instances of a program.

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/proof/execution/memory.hpp"

namespace chorale::proof {

/// Holds a plan without the blocks that others stand for.
struct Excerpt {
  Plan plan;
  /// Says, by rank and chunk of the memory that contains its output, whether a left-out block writes the
  /// chunk.
  std::vector<std::vector<bool>> left_out;

  /// Returns whether left-out blocks write all of a part of that memory.
  bool leaves_out(uint32_t rank, const Message&, const Range&) const;
};

/// Returns an excerpt of the plan, or none if less than half of the blocks would be left out.
std::optional<Excerpt> leave_out_copies(const Plan&, const Storage&);

}  // namespace chorale::proof
