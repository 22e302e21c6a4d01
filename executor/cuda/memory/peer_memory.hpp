#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "chorale/world.hpp"
#include "executor/cuda/device/device.hpp"

namespace chorale::cuda {

class Imported;

/// Records what one rank knows of the others' memory. An executor has one. Imported allocations are kept by
/// rank and allocation, in use or not, so that nothing is opened twice.
///
/// An import keeps the physical memory even after its owner has freed it, and so do this rank's exports of
/// cuMemCreate memory. The next exchange after that closes such imports, in use or not. Unused imports are
/// closed when there are more than `unused_limit`.
class Imports {
 public:
  static constexpr size_t unused_limit = 64;

  /// Gathers the devices of all ranks. Collective. The current device stays the rank's from now on.
  /// \throws RunError as gather_devices() does
  explicit Imports(World& world);
  ~Imports();
  Imports(Imports&&) noexcept;
  Imports& operator=(Imports&&) noexcept;

  const std::vector<RankDevice>& devices() const;  ///< by rank

  /// Closes the unused imports, on this rank only.
  void trim();

  size_t held() const;    ///< allocations imported, in use or not
  size_t opened() const;  ///< the number of times that one had to be opened

 private:
  friend class PeerMemory;
  struct State;
  std::unique_ptr<State> state_;
};

/// Holds one buffer per rank, all addressable here. Ranks on other hosts have none.
///
/// cudaMalloc memory is mapped by its IPC handle. With cuMemCreate one buffer may span several adjacent
/// allocations; it is mapped by descriptors, or by fabric handles if it has only these. Ranks of one process
/// use each other's pointers. Destroy it before its Imports. It may outlive memory that a peer frees, but
/// must not be used then: see stale().
class PeerMemory {
 public:
  /// Maps every rank's `[mine, mine + bytes)` here; a rank with null or 0 bytes gives nothing. Collective.
  /// Sizes and kinds of memory may differ by rank.
  /// \throws RunError of the lowest rank that failed, on all ranks: `other`, with the reason, for memory that
  /// cannot be shared (identity_of() tells in advance)
  static PeerMemory exchange(World& world, Imports& imports, const void* mine, uint64_t bytes);

  PeerMemory();
  PeerMemory(PeerMemory&&) noexcept;
  PeerMemory& operator=(PeerMemory&&) noexcept;
  ~PeerMemory();

  /// Returns the buffer of a rank. Null if the rank gave nothing, or is on another host.
  char* at(int rank) const { return shares_.at(rank).data; }
  uint64_t bytes(int rank) const { return shares_.at(rank).bytes; }
  int ranks() const { return int(shares_.size()); }

  /// Returns true if some rank has freed its memory and it was closed here. Then at() returns invalid
  /// pointers.
  bool stale() const;

 private:
  struct Share {
    char* data = nullptr;
    uint64_t bytes = 0;
    std::shared_ptr<Imported> keep;  ///< empty for memory of this process
  };
  std::vector<Share> shares_;  // by rank
};

}  // namespace chorale::cuda
