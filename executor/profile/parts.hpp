/// \file
/// This cuts what a thread block did, so that a measured launch and a predicted one have the same parts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "chorale/comparison.hpp"

namespace chorale::profile_of {

/// Holds the times of an operation, with those that one of the two sides counts as part of it.
struct Part {
  uint32_t op = 0;
  std::vector<uint32_t> with = {};                              ///< in their order
  std::optional<uint64_t> measured_ns = {}, predicted_ns = {};  ///< none: that side has no time for it
};

/// Cuts the spans of one thread block, whose operations are `ops`, into parts.
///
/// An operation that is predicted and has no measured span was not done, or is in the span of another one.
/// A GPU posts and awaits neighbouring operations side by side, and does small copies in one go. It adds its
/// own packets from the memory they were packed from, and counts the turns of a pipeline as the operation
/// before it. A simulated nop is in the operation after it.
std::vector<Part> parts_of(std::span<const Op> ops, std::span<const TraceSpan* const> measured,
                           std::span<const TraceSpan* const> predicted);

}  // namespace chorale::profile_of
