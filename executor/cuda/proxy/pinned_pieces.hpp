/// \file
/// PinnedPieces is pinned host memory in pieces of one size, for copies to and from a GPU.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "executor/cuda/device/host_words.hpp"

namespace chorale::cuda {

/// Allocates all of it at once, because CUDA may wait for kernels when it pins memory, and kernels wait for
/// the data that goes through it. Only one thread at a time may use it.
class PinnedPieces {
 public:
  PinnedPieces() = default;
  /// \throws RunError resources
  PinnedPieces(size_t count, size_t piece_bytes);

  size_t piece_bytes() const { return piece_bytes_; }

  /// Takes a piece; null if all are in use. A piece whose last pointer is gone is free again.
  std::shared_ptr<std::byte[]> take();

 private:
  struct Room {
    HostArray<std::byte> memory;
    std::vector<std::byte*> free;
  };
  std::shared_ptr<Room> room_;  ///< outlives this object as long as a piece lives
  size_t piece_bytes_ = 0;
};

}  // namespace chorale::cuda
