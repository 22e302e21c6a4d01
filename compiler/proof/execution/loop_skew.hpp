#pragma once
/// \file
/// The loop skew says how many turns of a pipeline a proof must look at. The number of turns depends on the
/// size of the message, so an execution with few turns must stand for executions with any number.
/// loop_skew.cpp argues why it does.

#include <cstdint>
#include <optional>

#include "chorale/diagnostic.hpp"

namespace chorale::proof {

struct LoopSkew {
  /// Holds the largest number of turns that one block can run ahead of another. An execution with two turns
  /// more orders its operations as every longer one does.
  uint64_t ahead = 0;

  /// Names two blocks that post to and take from one counter in pipelines that do not correspond. The number
  /// of turns that one of them is ahead then depends on the total number of turns.
  struct Mismatch {
    OpPlace posts, takes;
  };
  std::optional<Mismatch> mismatch;
};

/// Computes the loop skew of a plan. If several blocks post to a counter, or several take from it, their
/// order is unknown. Then their pipelines need not correspond, and all posts outside of pipelines count as
/// turns ahead.
LoopSkew skew_of(const Plan&);

}  // namespace chorale::proof
