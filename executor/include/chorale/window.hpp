/// \file
/// A Window is memory of every rank that all ranks of a world can address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "chorale/world.hpp"

namespace chorale {

/// Holds one zeroed piece of memory for each rank, mapped in all ranks, aligned to 4096 bytes.
///
/// A process leaves no shared memory behind, however it ends. The destructor never blocks. A peer keeps what
/// it has mapped until it drops its own handle.
class Window {
 public:
  /// Makes a window; collective. `bytes` may differ by rank and may be 0.
  /// \throws RunError resources, on all ranks, if one rank cannot have its bytes; otherwise as
  ///         World::barrier()
  static Window create(World& world, uint64_t bytes);

  Window(Window&&) noexcept;
  Window& operator=(Window&&) noexcept;
  ~Window();

  std::byte* local() const { return at(rank_); }  ///< null if bytes(rank) is 0
  std::byte* at(int rank) const;  ///< null if bytes(rank) is 0, or the rank is on another host
  uint64_t bytes(int rank) const;
  int ranks() const;

 private:
  struct Maps;
  explicit Window(std::shared_ptr<Maps> maps, int rank);

  std::shared_ptr<Maps> maps_;
  int rank_ = -1;
};

}  // namespace chorale
