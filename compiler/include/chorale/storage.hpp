#pragma once
/// \file
/// These functions say when input and output of a rank share memory, and which buffers peers access. The
/// proofs and the executor both use them, so that they agree.

#include <cstdint>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale {

/// Returns whether input and output of a rank are one memory wherever a valid plan runs. If the application
/// passes two buffers to such a plan, the executor merges them into one. Other plans in place run with two
/// buffers then.
bool is_one_storage(const Plan&, uint32_t rank);
/// Returns whether the channels or remote buffers of any rank name this buffer of this rank.
bool reached_by_peers(const Plan&, uint32_t rank, BufferKind);
/// Returns whether the channels or remote buffers of any rank name this buffer of some rank.
bool reached_by_peers(const Plan&, BufferKind);
/// Returns whether any operation of this rank or of a peer may access this buffer of this rank. For peers see
/// reached_by_peers().
bool uses(const Plan&, uint32_t rank, BufferKind);
/// Returns, by rank, whether an operation of any rank writes its output. In a "sendrecv" program these ranks
/// receive. The outputs of the other ranks stay unchanged, which is no error.
/// \param one_storage  if true, a plan in place runs in one memory, so an operation that writes an input
///   writes an output; if false, that holds only for ranks with is_one_storage()
std::vector<bool> receivers(const Plan&, bool one_storage);

}  // namespace chorale
