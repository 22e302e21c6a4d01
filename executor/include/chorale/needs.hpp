#pragma once
/// \file
/// Computes what a plan takes of the machine that runs it.

#include <cstdint>
#include <vector>

#include "chorale/plan.hpp"
#include "chorale/scratch.hpp"
#include "chorale/types.hpp"

namespace chorale {

/// The most threads of a block on GPUs: the kernels use the registers that more threads would need. A plan
/// that asks for more runs with this many. That changes its speed and no result: what a block does, and the
/// part that a thread-block group gives it, is a piece of the data, which its threads share out among them,
/// however many there are.
constexpr uint32_t most_block_threads = 512;

/// Says what one rank of a plan takes, for one size of message.
struct RankNeeds {
  uint64_t input_bytes = 0, output_bytes = 0;
  uint64_t scratch_bytes = 0;  ///< allocated when the plan is bound
  uint32_t thread_blocks = 0;  ///< all of them run at the same time, because they wait for each other
  uint32_t memory_channels = 0, port_channels = 0, switch_channels = 0;
  std::vector<uint32_t> peers;  ///< ranks whose memory it must reach, in order
  bool packets = false;
  /// Peers read or write this memory, so a binding holds only for the memory it was made for; see
  /// Executor::execute().
  bool input_reached = false, output_reached = false;
};

/// Returns what `rank` takes to run the plan on a message of `bytes` bytes.
/// \param round_scratch  Config::round_scratch of the executor
/// \throws UsageError if the plan does not take messages of that size
RankNeeds needs_of(const Plan&, uint32_t rank, uint64_t bytes, DType,
                   uint64_t round_scratch = default_round_scratch);

/// Returns the bytes of memory that are still available on this host, or in the control group of this process
/// if that has less. Returns UINT64_MAX if nothing says how much there is.
uint64_t available_host_memory();

}  // namespace chorale
