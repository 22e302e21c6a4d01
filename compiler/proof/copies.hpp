#pragma once
/// \file
/// Leaves out thread blocks that do what others do, but at other chunks. Usually they are the instances of a
/// program.

#include <cstdint>
#include <optional>
#include <vector>

#include "memory.hpp"

namespace chorale::proof {

/// A plan without the blocks that others stand for.
struct Excerpt {
  Plan plan;
  /// By rank and chunk of the memory that its output is in: true if a block that is left out overwrites the
  /// chunk.
  std::vector<std::vector<bool>> left_out;

  /// Returns whether blocks that are left out overwrite all of a part of that memory.
  bool leaves_out(uint32_t rank, const Message&, const Range&) const;
};

/// Returns an excerpt of the plan, or none if less than half of the blocks would be left out.
std::optional<Excerpt> leave_out_copies(const Plan&, const Storage&);

}  // namespace chorale::proof
