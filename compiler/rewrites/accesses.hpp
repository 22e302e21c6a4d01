#pragma once
/// \file
/// Which chunks an operation touches, by the roles of its operands.

#include <cstdint>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale {

/// Chunks of one buffer of one rank that an operation reads or overwrites.
struct Access {
  uint32_t rank;
  BufferKind buffer;
  bool packets;  ///< laid out as packets: twice as many bytes, from twice the offset
  bool write;
  uint64_t begin, end;

  bool operator==(const Access&) const = default;
};

/// Appends what `op` touches on rank `gpu` itself, and with `everywhere` what it touches at peers.
///
/// Where the plan is in place, input and output are one memory; an access to either is
/// told in the coordinates of the larger one.
void list_accesses(const Plan&, const Gpu&, const ThreadBlock&, const Op&, bool everywhere,
                   std::vector<Access>&);

/// True if both touch a chunk. Packets and plain chunks of scratch are compared both by chunk and by byte,
/// because which of the two shares memory is up to the executor.
bool overlap(const Access&, const Access&);

/// True if both touch a chunk and one of them overwrites it.
inline bool conflict(const Access& left, const Access& right) {
  return left.rank == right.rank && (left.write || right.write) && overlap(left, right);
}

}  // namespace chorale
