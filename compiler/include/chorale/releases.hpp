#pragma once
/// \file
/// Profiles need to know, for every operation that waits, for which operations it waits. This header finds
/// them.

#include <cstdint>
#include <vector>

#include "chorale/diagnostic.hpp"

namespace chorale {

/// Says what one operation of a launch waits for. In a pipeline, this is about its last turn.
struct Awaited {
  /// Lists the operations that must all come before this one goes on, so the last of them releases it. They
  /// are posts of its channels and semaphores, writes of its packets, and arrivals at its barrier, including
  /// its own arrival. An operation in a pipeline is listed only for its last turn. For an earlier turn the
  /// pipeline is listed in its place. For example, a wait that takes the signal of the last turn but one
  /// lists the pipeline.
  std::vector<OpPlace> releases;
  /// This is false if thread blocks compete for the posts that the operation takes, because `releases` then
  /// differs from run to run, or if the plan cannot be executed symbolically.
  bool known = true;
};

/// Lists the operations that each operation waits for, by rank, thread block and operation.
using AwaitedByOp = std::vector<std::vector<std::vector<Awaited>>>;

/// Executes one launch symbolically, as the proofs do, and lists the operations that each one waits for.
/// \param plan  without findings of check()
/// \param chunk_bytes  bytes of one chunk of the message, which determine the number of turns of pipelines
AwaitedByOp list_awaited(const Plan& plan, uint64_t chunk_bytes);

}  // namespace chorale
