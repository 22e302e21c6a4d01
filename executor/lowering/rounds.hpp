/// \file
/// A long message runs in rounds. Each round is a launch of the whole plan on one slice of every chunk.
/// docs/decisions/0023-rounds.md explains why that is right.
#pragma once

#include <cstdint>
#include <vector>

#include "chorale/layout.hpp"

namespace chorale::lowering {

/// Gives the number of bytes that exist in a round's slices. Rounds of one shape differ only in where their
/// slices begin.
struct RoundShape {
  uint64_t whole = 0;  ///< bytes in the slice of a complete chunk
  uint64_t last = 0;   ///< bytes in the slice of the chunk in which a segment ends

  bool operator==(const RoundShape&) const = default;
};
RoundShape shape_of_round(const Layout&, uint64_t round);

/// Returns one round per shape, in order. There are at most four, however many rounds there are.
std::vector<uint64_t> rounds_of_all_shapes(const Layout&);

}  // namespace chorale::lowering
