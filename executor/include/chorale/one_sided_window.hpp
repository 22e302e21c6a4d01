/// \file
/// A OneSidedWindow is a window with signals and barriers. Kernels put to it and get from it with the
/// functions of device/one_sided.hpp, without a call by its owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "chorale/device/one_sided.hpp"
#include "chorale/transport.hpp"
#include "chorale/window.hpp"

namespace chorale {

/// Adds signals and barriers to a Window, so that a kernel that puts data into the window can signal its
/// owner. The window is in host or GPU memory. The world must outlive it.
class OneSidedWindow {
 public:
  /// Makes a window; collective. Only `bytes` may differ by rank.
  /// \param signals   the number of signals that each rank has for each sender
  /// \param barriers  the number of barriers of each rank
  /// \throws RunError mismatch, on all ranks, if `signals`, `barriers` or `space` differ; otherwise as
  ///         Window::create(), or as direct_rendezvous() in device memory
  static OneSidedWindow create(World& world, uint64_t bytes, uint32_t signals, uint32_t barriers,
                               Space space = Space::host);

  OneSidedWindow(OneSidedWindow&&) noexcept;
  OneSidedWindow& operator=(OneSidedWindow&&) noexcept;
  ~OneSidedWindow();

  std::byte* local() const;        ///< this rank's memory; null if bytes() of this rank is 0
  uint64_t bytes(int rank) const;  ///< the size of a rank's memory

  /// Returns whether LL128 packets work between all ranks; the same on all ranks. They need NVLink between
  /// GPUs, and always work in host memory.
  bool whole_lines() const;

  /// Returns the view that you pass to kernels. It is valid as long as the window lives.
  WindowView view() const;

  /// Does reset(), and sets the data in all windows to zero.
  void clear();

  /// Sets signals and barriers back to their state after create(). Collective; call it after World::reset(),
  /// when no kernel is running. Without it, leftover signals of a stopped launch could let a later barrier
  /// pass before all ranks have reached it. The data in the window stays.
  /// \throws RunError if the world stops
  void reset();

 private:
  struct State;
  explicit OneSidedWindow(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace chorale
