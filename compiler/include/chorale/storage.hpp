#pragma once
/// \file
/// Tells which buffers of a plan are one memory, and which of them peers reach. The proofs and the executor
/// must see this alike.

#include <cstdint>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale {

/// Returns whether input and output of a rank are one memory wherever a valid plan runs. If the application
/// gives two to such a plan, the executor makes one of them. Other plans in place run in two then.
bool is_one_storage(const Plan&, uint32_t rank);
/// Returns whether the channels or remote buffers of any rank name this buffer of this rank.
bool reached_by_peers(const Plan&, uint32_t rank, BufferKind);
/// Returns, by rank, whether an operation of any rank writes its output. Such a rank receives in a program
/// that chooses itself who sends to whom ("sendrecv"). The output of another rank stays as it is, and that is
/// right.
/// \param one_storage  if true, a plan in place runs in one memory, so that an operation that writes an input
///   writes an output; if false, that holds only for ranks with is_one_storage()
std::vector<bool> receivers(const Plan&, bool one_storage);

}  // namespace chorale
