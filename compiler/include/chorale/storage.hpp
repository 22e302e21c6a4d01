#pragma once
/// \file
/// Which buffers of a plan are one memory, and whose peers reach them: what the proofs and the executor must
/// see alike.

#include <cstdint>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale {

/// Whether input and output of a rank are one memory wherever a valid plan runs: if the application gives two
/// to a plan in place, the executor makes one of them. Other plans in place run in two then.
bool is_one_storage(const Plan&, uint32_t rank);
/// Whether the channels or remote buffers of any rank name a buffer of this rank.
bool reached_by_peers(const Plan&, uint32_t rank, BufferKind);
/// By rank: whether an operation of any rank writes its output. What is received by a program that says
/// itself who sends to whom ("sendrecv"): the output of another rank stays as it is, and is right so.
/// \param one_storage  a plan in place runs in one memory, so that what writes an input writes an output;
///                     else only where is_one_storage()
std::vector<bool> receivers(const Plan&, bool one_storage);

}  // namespace chorale
