/// \file
/// A FarPlace names memory of another rank by rank, buffer and offset. Device programs use it for memory of
/// other hosts, and for buffers whose address a peer publishes at every run. Requests to proxies use it for
/// memory of other hosts. C++17, host and device.
#pragma once

#include <cstdint>

#include "chorale/device/macros.hpp"

namespace chorale::remote {

/// Represents a place in memory of another rank, given by buffer and offset. It is encoded as a number that
/// is not a valid address, so that a kernel that used it as an address would fault.
struct FarPlace {
  uint32_t rank = 0;
  uint32_t buffer = 0;  ///< a BufferKind, or lowering::packet_kind
  uint64_t offset = 0;  ///< in bytes

  static constexpr uint32_t input = 0, output = 1;  ///< as in BufferKind, which kernels do not include
  static constexpr unsigned rank_at = 40, buffer_at = 56;
  static constexpr uint64_t most_ranks = uint64_t{1} << (buffer_at - rank_at);
  static constexpr uint64_t most_bytes = uint64_t{1} << rank_at;  ///< the limit of a buffer, which is more
                                                                  ///< than a GPU has

  /// Returns the number for the beginning of a buffer. Add offsets to it.
  static CHORALE_HD char* base(uint32_t rank, uint32_t buffer) {
    return reinterpret_cast<char*>(uint64_t{buffer + 1} << buffer_at | uint64_t{rank} << rank_at);
  }
  static CHORALE_HD bool is(uint64_t address) { return (address >> buffer_at & 7) != 0; }

  static CHORALE_HD FarPlace of(const void* address) {
    const uint64_t at = reinterpret_cast<uint64_t>(address);
    return {uint32_t(at >> rank_at & (most_ranks - 1)), uint32_t(at >> buffer_at & 7) - 1,
            at & (most_bytes - 1)};
  }
};

}  // namespace chorale::remote
