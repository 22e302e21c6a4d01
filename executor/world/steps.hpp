/// \file
/// Tests can make a rank fail at these steps of the collectives.
#pragma once

namespace chorale::world {

enum class CollectiveStep {
  memory,     ///< in a join: the rank is about to make, or to look for, the control memory
  seat,       ///< in a join: the rank has taken its seat, and waits for the others
  group,      ///< in a join: all ranks have a seat, and the rank is about to watch the others
  window,     ///< in a bind: the rank is about to make the memory that its peers access
  reset,      ///< in a reset: the rank is about to wait for the others
  survivors,  ///< in survivors(): the rank is about to make the next world
  split       ///< in split(): the rank is about to make or to open the memory of its new world
};

}  // namespace chorale::world

/// A test may define this function. It is a weak symbol, so a library or program need not define it.
extern "C" [[gnu::weak]] void chorale_world_step(chorale::world::CollectiveStep step);

namespace chorale::world {

inline void at_step(CollectiveStep step) {
  if (chorale_world_step) chorale_world_step(step);
}

}  // namespace chorale::world
