#pragma once
/// \file
/// Finds, for every operation that waits, the operations that it waits for.

#include <cstdint>
#include <vector>

#include "chorale/diagnostic.hpp"

namespace chorale {

/// Says what one operation of a launch waits for; in a pipeline, in its last turn.
struct Awaited {
  /// All of these operations have to come before this one goes on, so the last of them releases it. They are
  /// posts of its channels and semaphores, writes of its packets, and arrivals at its barrier, its own among
  /// them. A pipeline stands for those in its turns before the last.
  std::vector<OpPlace> releases;
  /// It is false if thread blocks compete for what the operation takes, because the operations then differ
  /// from run to run, or if the plan cannot be played.
  bool known = true;
};

/// Lists the operations that each operation waits for, by rank, thread block and operation.
using AwaitedByOp = std::vector<std::vector<std::vector<Awaited>>>;

/// Plays one launch, as the proofs do, and lists the operations that each one waits for.
/// \param plan  in which check() finds nothing
/// \param chunk_bytes  bytes of a chunk of the message, which say how often pipelines turn
AwaitedByOp list_awaited(const Plan& plan, uint64_t chunk_bytes);

}  // namespace chorale
