#pragma once
/// \file
/// What a plan takes of the machine that runs it.

#include <cstdint>
#include <vector>

#include "chorale/plan.hpp"
#include "chorale/types.hpp"

namespace chorale {

/// What one rank of a plan takes, for one size of message.
struct RankNeeds {
  uint64_t input_bytes = 0, output_bytes = 0;
  uint64_t scratch_bytes = 0;  ///< allocated when the plan is bound
  uint32_t thread_blocks = 0;  ///< all of them at a time: they wait for each other
  uint32_t memory_channels = 0, port_channels = 0, switch_channels = 0;
  std::vector<uint32_t> peers;  ///< ranks whose memory it must reach, in order
  bool packets = false;
};

/// \throws UsageError if the plan does not take messages of that size
RankNeeds needs_of(const Plan&, uint32_t rank, uint64_t bytes, DType);

}  // namespace chorale
