#pragma once
/// \file
/// OpBounds say how much one operation may hold, by target. Fusion keeps these bounds.

#include <cstddef>

#include "chorale/target.hpp"

namespace chorale {

struct OpBounds {
  size_t operands;       ///< sources, and also destinations
  size_t channels;       ///< channel ids
  size_t semaphores;     ///< semaphore ids
  bool mixed_transfers;  ///< the sources of one put may be in several buffers
  bool moving_chains;    ///< x = a + b; x = x + c is one reduction even if x is not a
};

const OpBounds& op_bounds(Target);

}  // namespace chorale
