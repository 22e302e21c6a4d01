/// \file
/// Exports records the allocations that this rank has given to its peers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/system/shared_memory.hpp"
#include "identity.hpp"

namespace chorale::cuda {

/// Holds an IPC or a fabric handle.
using HandleBytes = std::array<std::byte, 64>;

/// Gives allocations numbers by which peers know them. No number is reused, even for cudaMalloc memory at an
/// address that was freed, or for another handle mapped at the same place.
class Exports {
 public:
  Exports() = default;
  Exports(const Exports&) = delete;
  Exports& operator=(const Exports&) = delete;
  ~Exports();

  uint64_t number_of(const Segment& segment);

  /// Drops allocations that no longer exist; returns their numbers.
  std::vector<uint64_t> forget_freed();

 private:
  struct Export {
    uint64_t number;
    Segment segment;
  };
  std::vector<Export> exports_;
  uint64_t next_ = 1;
};

/// Both return the data that a peer's Imported needs to open a segment.
/// \throws RunError
HandleBytes handle_of(const Segment& segment);             ///< ipc, fabric
system::Descriptor descriptor_of(const Segment& segment);  ///< descriptor

}  // namespace chorale::cuda
