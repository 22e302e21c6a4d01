#pragma once
/// \file
/// Who releases whom: for every operation that waits, the operations that it waits for.

#include <cstdint>
#include <vector>

#include "chorale/diagnostic.hpp"

namespace chorale {

/// What one operation of a launch waits for; in a pipeline, in its last turn.
struct Awaited {
  /// Operations that have all to come before this one goes on, so the last of them releases it: posts of its
  /// channels and semaphores, writes of its packets, and arrivals at its barrier, its own among them. For one
  /// in an earlier turn of a pipeline than the last stands the pipeline.
  std::vector<OpPlace> releases;
  /// False: thread blocks compete for what it takes, so which operations these are differs from run to run;
  /// or the plan is none that can be played.
  bool known = true;
};

/// By rank, thread block and operation.
using AwaitedByOp = std::vector<std::vector<std::vector<Awaited>>>;

/// Plays one launch, as the proofs do.
/// \param plan  in which check() finds nothing
/// \param chunk_bytes  of the message, for how often pipelines turn
AwaitedByOp list_awaited(const Plan& plan, uint64_t chunk_bytes);

}  // namespace chorale
