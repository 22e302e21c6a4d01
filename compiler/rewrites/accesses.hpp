#pragma once
/// \file
/// list_accesses() says which chunks an operation touches, by the roles of its operands.

#include <cstdint>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale {

/// Names chunks of one buffer of one rank that an operation reads or overwrites.
struct Access {
  uint32_t rank;
  BufferKind buffer;
  bool packets;  ///< laid out as packets: twice as many bytes, from twice the offset
  bool write;
  uint64_t begin, end;

  bool operator==(const Access&) const = default;
};

/// Appends what `op` touches on rank `gpu` itself, and with `everywhere` also what it touches at peers.
///
/// If the plan is in place, input and output are one memory. An access to either is then given in the
/// coordinates of the larger one.
void list_accesses(const Plan&, const Gpu&, const ThreadBlock&, const Op&, bool everywhere,
                   std::vector<Access>&);

/// Returns true if both touch a chunk. It compares packets and plain chunks of scratch both by chunk and by
/// byte, because the executor decides which of the two shares memory.
bool overlap(const Access&, const Access&);

/// Returns true if both touch a chunk and one of them overwrites it.
inline bool conflict(const Access& left, const Access& right) {
  return left.rank == right.rank && (left.write || right.write) && overlap(left, right);
}

}  // namespace chorale
