/// \file
/// A Window gives every rank a piece of memory that all ranks of a world can access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "chorale/world.hpp"

namespace chorale {

/// Holds one zeroed piece of memory per rank, which all ranks map. Each piece is aligned to 4096 bytes.
///
/// A process leaves no shared memory behind, however it ends. The destructor never blocks. A peer keeps its
/// mapping until it destroys its handle.
class Window {
 public:
  /// Makes a window; collective. `bytes` may differ by rank and may be 0.
  /// \throws RunError resources, on all ranks, if one rank cannot get its bytes; otherwise as
  ///         World::barrier()
  static Window create(World& world, uint64_t bytes);

  /// Makes a window of sizes that all ranks know; collective. It also requires that each host has the memory
  /// of all its ranks together, because each piece may fit alone when all do not.
  /// \param bytes  bytes of each rank's piece, by rank. All ranks must pass the same sizes
  /// \throws RunError as the other create()
  static Window create(World& world, std::span<const uint64_t> bytes);

  Window(Window&&) noexcept;
  Window& operator=(Window&&) noexcept;
  ~Window();

  std::byte* local() const { return at(rank_); }  ///< this rank's piece; null if it has 0 bytes
  /// Returns the address of a rank's piece in this process. It is null if the piece has 0 bytes, or if the
  /// rank is on another host.
  std::byte* at(int rank) const;
  uint64_t bytes(int rank) const;  ///< the size of a rank's piece
  int ranks() const;               ///< the number of ranks

 private:
  struct Maps;
  explicit Window(std::shared_ptr<Maps> maps, int rank);
  static Window make(World& world, uint64_t bytes, bool require_memory);

  std::shared_ptr<Maps> maps_;
  int rank_ = -1;
};

}  // namespace chorale
