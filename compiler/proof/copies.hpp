#pragma once
/// \file
/// Thread blocks that do at other chunks what others do: the instances of a program, as a rule.

#include <cstdint>
#include <optional>
#include <vector>

#include "memory.hpp"

namespace chorale::proof {

/// A plan without the blocks that others stand for.
struct Excerpt {
  Plan plan;
  /// By rank and chunk of the memory that its output is in: a block that is left out overwrites it.
  std::vector<std::vector<bool>> left_out;

  /// Whether all of a part of that memory is overwritten by what is left out.
  bool leaves_out(uint32_t rank, const Message&, const Range&) const;
};

/// None if less than half of the blocks would be left out.
std::optional<Excerpt> leave_out_copies(const Plan&, const Storage&);

}  // namespace chorale::proof
