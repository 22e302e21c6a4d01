/// \file
/// Memory of ranks of other hosts, as tapes and the proxy's orders have it.
#pragma once

#include <cstdint>

namespace chorale::cuda {

/// Where it is told by buffer and offset, since it has no address here. What stands for one lies where no
/// memory is, so that a kernel that took it for one would fault.
struct FarPlace {
  uint32_t rank = 0;
  uint32_t buffer = 0;  ///< a BufferKind, or interpreter::packet_kind
  uint64_t offset = 0;  ///< bytes

  static constexpr unsigned rank_at = 40, buffer_at = 56;
  static constexpr uint64_t most_ranks = uint64_t{1} << (buffer_at - rank_at);
  static constexpr uint64_t most_bytes = uint64_t{1} << rank_at;  ///< of a buffer: more than a GPU has

  /// The beginning of a buffer; offsets are added to it.
  static char* base(uint32_t rank, uint32_t buffer) {
    return reinterpret_cast<char*>(uint64_t{buffer + 1} << buffer_at | uint64_t{rank} << rank_at);
  }
  static bool is(uint64_t address) { return (address >> buffer_at & 7) != 0; }

  static FarPlace of(const void* address) {
    const uint64_t at = reinterpret_cast<uint64_t>(address);
    return {uint32_t(at >> rank_at & (most_ranks - 1)), uint32_t(at >> buffer_at & 7) - 1,
            at & (most_bytes - 1)};
  }
};

}  // namespace chorale::cuda
