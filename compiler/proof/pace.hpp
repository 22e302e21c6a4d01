#pragma once
/// \file
/// How the turns of thread blocks follow each other: as many as are executed have to stand for any number.

#include <cstdint>
#include <optional>

#include "chorale/diagnostic.hpp"

namespace chorale::proof {

struct Pace {
  /// With two turns more than these what comes before what is as it is with any more.
  uint64_t ahead = 0;

  /// Two ends of a counter whose pipelines do not correspond, so that how many turns they are apart depends
  /// on how many there are.
  struct Mismatch {
    OpPlace posts, takes;
  };
  std::optional<Mismatch> mismatch;
};

/// Where several blocks post or take, who comes first is not known: all that is posted outside of pipelines
/// counts then, and nothing has to correspond.
Pace pace_of(const Plan&);

}  // namespace chorale::proof
