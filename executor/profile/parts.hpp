/// \file
/// What a thread block did, cut so that a measured launch and a predicted one have the same parts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "chorale/comparison.hpp"

namespace chorale::profile_of {

/// An operation, with those that one of the two sides counts as it.
struct Part {
  uint32_t op = 0;
  std::vector<uint32_t> with = {};                              ///< in their order
  std::optional<uint64_t> measured_ns = {}, predicted_ns = {};  ///< none: that side has no time for it
};

/// Spans of one thread block, whose operations are `ops`.
///
/// What is predicted and has no span was not done, or is in the span of another one: a GPU posts and awaits
/// side by side what stands side by side, plays small copies in one go, adds its own packets from where they
/// were packed from, and notes the turns of a pipeline as the operation before it. A simulated nop is in the
/// operation behind it.
std::vector<Part> parts_of(std::span<const Op> ops, std::span<const TraceSpan* const> measured,
                           std::span<const TraceSpan* const> predicted);

}  // namespace chorale::profile_of
