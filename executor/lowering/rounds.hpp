/// \file
/// A long message runs in rounds. Each round runs the whole plan, as a launch of its own, on one slice of
/// every chunk. docs/decisions/0023-rounds.md says why that is right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chorale/layout.hpp"

namespace chorale::lowering {

/// The number of bytes of its slices that exist in a round. Rounds of one shape differ only in the place
/// where their slices begin.
struct RoundShape {
  uint64_t whole = 0;  ///< bytes in the slice of a chunk that exists as a whole
  uint64_t last = 0;   ///< bytes in the slice of the chunk in which a segment ends

  bool operator==(const RoundShape&) const = default;
};
RoundShape shape_of_round(const Layout&, uint64_t round);

/// Returns one round of each shape, in order. There are four at most, however many rounds there are.
std::vector<uint64_t> rounds_of_all_shapes(const Layout&);

}  // namespace chorale::lowering
