/// \file
/// Pinned memory of the host, in pieces of one size, for copies from and to a GPU.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "host_words.hpp"

namespace chorale::cuda {

/// All of it is allocated at once: CUDA may wait for kernels when it pins memory, and kernels wait for what
/// is to go through it. Used by one thread at a time.
class PinnedPieces {
 public:
  PinnedPieces() = default;
  /// \throws RunError resources
  PinnedPieces(size_t count, size_t piece_bytes);

  size_t piece_bytes() const { return piece_bytes_; }

  /// Null if all are in use. A piece that is dropped is free again.
  std::shared_ptr<std::byte[]> take();

 private:
  struct Room {
    HostArray<std::byte> memory;
    std::vector<std::byte*> free;
  };
  std::shared_ptr<Room> room_;  ///< outlives us while a piece does
  size_t piece_bytes_ = 0;
};

}  // namespace chorale::cuda
