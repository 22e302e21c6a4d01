#pragma once
/// \file
/// Neighbouring operations that go through the same slices become one loop.

#include <cstdint>
#include <vector>

#include "layout.hpp"

namespace chorale::host {

struct Region {
  std::vector<Item> arriving;   ///< transfers of what is there when the loop begins; first in a turn
  std::vector<Item> computing;  ///< and then
  std::vector<Item> leaving;    ///< transfers of what the turn has computed; last
  bool loops = false;
  Expr turns;
  uint32_t at = 0;  ///< author's line of the first operation

  bool has(Action) const;
  std::vector<const Item*> items() const;  ///< in the order of a turn
};

/// The items in the order given, but for transfers that come first in a turn.
std::vector<Region> regions(std::vector<Item>);

}  // namespace chorale::host
