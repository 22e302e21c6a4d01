#pragma once
/// \file
/// Neighbouring operations that process the same slices become one loop.

#include <cstdint>
#include <vector>

#include "layout.hpp"

namespace chorale::schedule {

struct Region {
  std::vector<Item> arriving;   ///< first in a turn: transfers of data from before the loop
  std::vector<Item> computing;  ///< second: operations that each rank does alone
  std::vector<Item> leaving;    ///< last: transfers of results of the turn
  bool loops = false;
  Expr turns;
  uint32_t at = 0;  ///< author's line of the first operation

  bool has(Action) const;
  std::vector<const Item*> items() const;  ///< in the order of a turn
};

/// Returns regions with the items in the given order, except that some transfers come first in a turn.
std::vector<Region> regions(std::vector<Item>);

}  // namespace chorale::schedule
