/// \file
/// Windows with signals and barriers, for one-sided access by kernels (device/one_sided.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "chorale/device/one_sided.hpp"
#include "chorale/window.hpp"

namespace chorale {

/// A Window whose owner can be told what has been put into it. In host memory.
class OneSidedWindow {
 public:
  /// Collective. `signals` and `barriers` are the same on all ranks; `bytes` may differ.
  /// \throws RunError mismatch, on all ranks, if they are not; otherwise as Window::create()
  static OneSidedWindow create(World& world, uint64_t bytes, uint32_t signals, uint32_t barriers);

  std::byte* local() const { return data_.local(); }
  uint64_t bytes(int rank) const { return data_.bytes(rank); }

  /// For kernels. Lives as long as the window.
  WindowView view() const;

 private:
  OneSidedWindow(World& world, Window data, Window words, uint32_t signals, uint32_t barriers);

  Window data_, words_;
  int rank_;
  uint32_t signals_, barriers_;
  std::vector<char*> bases_;
  std::vector<uint64_t> bytes_;
  std::vector<Signal*> signals_at_;
  std::vector<Barrier*> barriers_at_;
};

}  // namespace chorale
