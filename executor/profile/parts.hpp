/// \file
/// parts_of() divides the times of a thread block into parts that a measured and a predicted launch have in
/// common.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "chorale/comparison.hpp"

namespace chorale::profile_of {

/// Holds the times of an operation, including operations that one of the two sides counts as part of it.
struct Part {
  uint32_t op = 0;
  std::vector<uint32_t> with = {};                              ///< those operations, in order
  std::optional<uint64_t> measured_ns = {}, predicted_ns = {};  ///< none: that side has no time for the part
};

/// Divides the spans of one thread block with the operations `ops` into parts.
///
/// If an operation is predicted but has no measured span, it was not done, or its time is in the span of
/// another operation. A GPU runs neighbouring posts and waits at the same time, and runs small copies
/// together. It adds a rank's own packets from the memory from which they were packed, and counts the turns
/// of a pipeline as the operation before the pipeline. The simulator counts a nop as part of the operation
/// after it.
std::vector<Part> parts_of(std::span<const Op> ops, std::span<const TraceSpan* const> measured,
                           std::span<const TraceSpan* const> predicted);

}  // namespace chorale::profile_of
