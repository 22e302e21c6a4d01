#pragma once
/// \file
/// What a plan takes of the machine that runs it.

#include <cstdint>
#include <vector>

#include "chorale/plan.hpp"
#include "chorale/scratch.hpp"
#include "chorale/types.hpp"

namespace chorale {

/// Threads of a block on GPUs, at most: the kernels take the registers that more would need. A plan that asks
/// for more runs with so many. That changes its speed and no result: what a block does, and the part that a
/// thread-block group gives it, is a piece of the data, which however many threads there are share out among
/// them.
constexpr uint32_t most_block_threads = 512;

/// What one rank of a plan takes, for one size of message.
struct RankNeeds {
  uint64_t input_bytes = 0, output_bytes = 0;
  uint64_t scratch_bytes = 0;  ///< allocated when the plan is bound
  uint32_t thread_blocks = 0;  ///< all of them at a time: they wait for each other
  uint32_t memory_channels = 0, port_channels = 0, switch_channels = 0;
  std::vector<uint32_t> peers;  ///< ranks whose memory it must reach, in order
  bool packets = false;
  /// Peers read or write there, so a binding is to the memory that it was made for, see Executor::execute().
  bool input_reached = false, output_reached = false;
};

/// \param round_scratch  Config::round_scratch of the executor
/// \throws UsageError if the plan does not take messages of that size
RankNeeds needs_of(const Plan&, uint32_t rank, uint64_t bytes, DType,
                   uint64_t round_scratch = default_round_scratch);

/// Bytes of memory that can still be had on this host, or in the control group of this process if it is given
/// less. UINT64_MAX where nothing says how much there is.
uint64_t available_host_memory();

}  // namespace chorale
