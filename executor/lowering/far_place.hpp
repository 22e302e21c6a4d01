/// \file
/// Device programs and requests to proxies name memory of ranks of other hosts by a FarPlace.
#pragma once

#include <cstdint>

namespace chorale::remote {

/// Represents a place in memory of another host, given by buffer and offset because it has no address here.
/// It is encoded as a number that is not a valid address, so that a kernel that used it as an address would
/// fault.
struct FarPlace {
  uint32_t rank = 0;
  uint32_t buffer = 0;  ///< a BufferKind, or lowering::packet_kind
  uint64_t offset = 0;  ///< in bytes

  static constexpr unsigned rank_at = 40, buffer_at = 56;
  static constexpr uint64_t most_ranks = uint64_t{1} << (buffer_at - rank_at);
  static constexpr uint64_t most_bytes = uint64_t{1} << rank_at;  ///< the limit of a buffer, which is more
                                                                  ///< than a GPU has

  /// Returns the number for the beginning of a buffer. Add offsets to it.
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

}  // namespace chorale::remote
