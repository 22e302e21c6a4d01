#pragma once
/// \file
/// Computes how many turns of a pipeline a proof has to look at. The number of turns depends on the size of
/// the message, so an execution with few turns has to stand for those with any number. skew.cpp argues why it
/// may.

#include <cstdint>
#include <optional>

#include "chorale/diagnostic.hpp"

namespace chorale::proof {

struct LoopSkew {
  /// The most turns that one block can run ahead of another. An execution with two turns more than these
  /// orders its operations as every longer one does.
  uint64_t ahead = 0;

  /// Two blocks that post to and take from one counter in pipelines that do not correspond. The number of
  /// turns that one of them is ahead then depends on the total number of turns.
  struct Mismatch {
    OpPlace posts, takes;
  };
  std::optional<Mismatch> mismatch;
};

/// Computes the skew of a plan. When several blocks post to a counter, or several take from it, their order
/// is unknown. Then their pipelines need not correspond, and all that is posted outside of pipelines counts
/// as run ahead.
LoopSkew skew_of(const Plan&);

}  // namespace chorale::proof
