#pragma once
/// \file
/// How many turns of a pipeline have to be looked at. The number of turns depends on the size of the message:
/// an execution with few turns has to stand for those with any number. pace.cpp argues why it may.

#include <cstdint>
#include <optional>

#include "chorale/diagnostic.hpp"

namespace chorale::proof {

struct Pace {
  /// The most turns that one block can run ahead of another. An execution with two turns more than these
  /// orders its operations as every longer one does.
  uint64_t ahead = 0;

  /// Two blocks that post to and take from one counter in pipelines that do not correspond: how many turns
  /// the one is ahead of the other then depends on how many turns there are.
  struct Mismatch {
    OpPlace posts, takes;
  };
  std::optional<Mismatch> mismatch;
};

/// Where several blocks post to a counter, or several take from it, nobody knows who comes first: then their
/// pipelines need not correspond, and all that is posted outside of pipelines counts as run ahead.
Pace pace_of(const Plan&);

}  // namespace chorale::proof
