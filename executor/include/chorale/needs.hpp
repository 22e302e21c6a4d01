#pragma once
/// \file
/// needs_of() says how much memory and how many thread blocks a plan needs.

#include <cstdint>
#include <vector>

#include "chorale/block_threads.hpp"
#include "chorale/plan.hpp"
#include "chorale/scratch.hpp"
#include "chorale/types.hpp"

namespace chorale {

/// Lists what one rank of a plan needs for one size of message.
struct RankNeeds {
  uint64_t input_bytes = 0, output_bytes = 0;
  uint64_t scratch_bytes = 0;  ///< allocated when the plan is bound
  uint32_t thread_blocks = 0;  ///< all of them run at the same time, because they wait for each other
  /// Counts the channels by what moves their data: the threads of blocks, a proxy, or a switch.
  uint32_t memory_channels = 0, port_channels = 0, switch_channels = 0;
  std::vector<uint32_t> peers;  ///< the ranks whose memory it accesses, in ascending order
  bool packets = false;         ///< the plan sends packets
  /// Say whether peers read or write the input and the output. If they do, a call with another buffer needs
  /// another binding; see Executor::execute().
  bool input_reached = false, output_reached = false;
};

/// Returns what `rank` needs to run the plan on a message of `bytes` bytes.
/// \param round_scratch  Config::round_scratch of the executor
/// \throws UsageError if the plan does not accept messages of that size
RankNeeds needs_of(const Plan&, uint32_t rank, uint64_t bytes, DType,
                   uint64_t round_scratch = default_round_scratch);

/// Returns the bytes of memory that are still available on this host, or in the control group of this process
/// if that has less. Returns UINT64_MAX if the system does not report them.
uint64_t available_host_memory();

}  // namespace chorale
