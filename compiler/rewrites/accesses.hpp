#pragma once
/// \file
/// list_accesses() says which chunks an operation accesses, by the roles of its operands.

#include <cstdint>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale {

/// Names chunks of one buffer of one rank that an operation reads or overwrites.
struct Access {
  uint32_t rank;
  BufferKind buffer;
  bool packets;  ///< stored as packets: twice as many bytes, from twice the offset
  bool write;
  uint64_t begin, end;

  bool operator==(const Access&) const = default;
};

/// Appends the accesses of `op` to rank `gpu` itself, and with `everywhere` also those to peers.
///
/// If the plan is in place, input and output are one memory. An access to either then has the coordinates of
/// the larger one.
void list_accesses(const Plan&, const Gpu&, const ThreadBlock&, const Op&, bool everywhere,
                   std::vector<Access>&);

/// Returns whether both access a common chunk. Packets and plain chunks of scratch are compared both by chunk
/// and by byte, because the executor decides in which of these ways they share memory.
bool overlap(const Access&, const Access&);

/// Returns whether both access a common chunk and one of them writes it.
inline bool conflict(const Access& left, const Access& right) {
  return left.rank == right.rank && (left.write || right.write) && overlap(left, right);
}

}  // namespace chorale
