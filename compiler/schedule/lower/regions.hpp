#pragma once
/// \file
/// Neighbouring operations that go through the same slices become one loop.

#include <cstdint>
#include <vector>

#include "layout.hpp"

namespace chorale::host {

struct Region {
  std::vector<Item> arriving;   ///< transfers of data from before the loop; first in a turn
  std::vector<Item> computing;  ///< operations that each rank does by itself; second
  std::vector<Item> leaving;    ///< transfers of results of the turn; last
  bool loops = false;
  Expr turns;
  uint32_t at = 0;  ///< author's line of the first operation

  bool has(Action) const;
  std::vector<const Item*> items() const;  ///< in the order of a turn
};

/// Returns regions with the items in the order given, but for transfers that come first in a turn.
std::vector<Region> regions(std::vector<Item>);

}  // namespace chorale::host
