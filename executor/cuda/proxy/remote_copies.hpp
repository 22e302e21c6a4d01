/// \file
/// RemoteCopies copies data from a GPU's memory to other hosts and back.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "executor/cuda/device/host_words.hpp"
#include "executor/cuda/device/stream.hpp"
#include "executor/remote/copies.hpp"

namespace chorale::cuda {

/// Holds pinned host memory in pieces of one size, for copies to and from a GPU. It is allocated all at once,
/// because CUDA may wait for kernels when it pins memory, and kernels wait for the data that goes through it.
/// Only one thread at a time may use it.
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

/// Copies through pinned memory. Everything that the copies need is made at once, because CUDA may wait for
/// kernels when it pins memory or makes an event, and kernels wait for these copies.
class RemoteCopies final : public remote::Copies {
 public:
  /// Makes the copies for the current device.
  /// \throws RunError
  RemoteCopies();

  /// Waits for all copies.
  ~RemoteCopies() override;

  size_t piece_bytes() const override { return out_.pieces.piece_bytes(); }
  ucx::Payload copy_out(const char* from, size_t bytes) override;
  bool copy_in(char* to, const ucx::Payload& payload, bool packets) override;
  uint64_t ended_out() override { return out_.look(); }
  uint64_t ended_in() override { return in_.look(); }
  void finish() override;

 private:
  using Piece = std::shared_ptr<std::byte[]>;

  /// Holds one direction's copies. They use one stream, so they end in the order in which they begin.
  struct Direction {
    explicit Direction(const char* name);
    void copy(void* to, const void* from, size_t bytes, Piece piece);
    uint64_t look();

    const char* what;
    PinnedPieces pieces;
    OwnedStream stream;
    std::vector<OwnedEvent> events;  ///< one per piece, used for the copies in turn
    std::deque<Piece> under_way;     ///< the pieces of copies that have not ended
    uint64_t ended = 0;              ///< the number of ended copies
  };

  Direction out_{"a copy to another host"}, in_{"a copy from another host"};
};

}  // namespace chorale::cuda
