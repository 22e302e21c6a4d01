#pragma once
/// \file
/// Which buffers of a plan are one memory, and whose peers reach them: what the proofs and the executor must
/// see alike.

#include "chorale/plan.hpp"

namespace chorale {

/// Whether input and output of a rank are one memory wherever a valid plan runs: if the application gives two
/// to a plan in place, the executor makes one of them. Other plans in place run in two then.
bool is_one_storage(const Plan&, uint32_t rank);
/// Whether the channels or remote buffers of any rank name a buffer of this rank.
bool reached_by_peers(const Plan&, uint32_t rank, BufferKind);

}  // namespace chorale
