/// \file
/// Tests make a rank fail at these steps of the collectives.
#pragma once

namespace chorale::world {

enum class Step {
  memory,    ///< a join: the rank is about to make, or to look for, the control memory
  seat,      ///< a join: it has taken its seat, and waits for the others
  group,     ///< a join: all have a seat, and it is about to watch the others
  window,    ///< a bind: it is about to make the memory that its peers reach
  reset,     ///< it is about to meet the others in a reset
  survivors  ///< it has come to make the next world
};

}  // namespace chorale::world

/// A test defines this. A library or program that does not define it does without.
extern "C" [[gnu::weak]] void chorale_world_step(chorale::world::Step step);

namespace chorale::world {

inline void at_step(Step step) {
  if (chorale_world_step) chorale_world_step(step);
}

}  // namespace chorale::world
