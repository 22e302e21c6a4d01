/// \file
/// A Pool gives out scratch at the same place on every rank.
#pragma once

#include <cstdint>
#include <memory>

#include "chorale/world.hpp"
#include "peer_memory.hpp"

namespace chorale::cuda {

/// Manages slabs of device memory. Every rank allocates slabs of the same size in the same order and maps
/// them at all peers once. A block has the same slab and offset on all ranks, so taking one exchanges no
/// handles unless a slab is added.
class Pool {
 public:
  static constexpr uint64_t slab_bytes = 64ull << 20;  ///< a larger block gets a slab of its size
  static constexpr uint64_t alignment = 512;

  class Block;

  /// Makes an empty pool. Local. `imports` must outlive the pool and its blocks, and the current device must
  /// be that of `imports`.
  Pool(World& world, Imports& imports);
  ~Pool();  ///< its memory stays until the last block is given back
  Pool(Pool&&) noexcept;
  Pool& operator=(Pool&&) noexcept;

  /// Takes a block, which is zero on all ranks on return. Collective, with the same `bytes` on every rank.
  ///
  /// \throws RunError mismatch if ranks ask for different sizes, or have given back different blocks since
  /// the last take(); resources, on all ranks, if one has too little memory
  Block take(uint64_t bytes);

  uint64_t reserved() const;  ///< bytes of all slabs

 private:
  struct State;
  World* world_;
  std::shared_ptr<State> state_;
};

/// Gives itself back when it is destroyed, without asking the peers. Before their next take(), the ranks must
/// have given back the same blocks, and no kernel of any rank may use them.
class Pool::Block {
 public:
  Block();
  Block(Block&&) noexcept;
  Block& operator=(Block&&) noexcept;
  ~Block();

  char* at(int rank) const;  ///< null if bytes() is 0, or the rank is on another host
  uint64_t bytes() const { return bytes_; }
  explicit operator bool() const { return state_ != nullptr; }

 private:
  friend class Pool;
  std::shared_ptr<State> state_;
  uint64_t slab_ = 0, offset_ = 0, bytes_ = 0;
};

}  // namespace chorale::cuda
