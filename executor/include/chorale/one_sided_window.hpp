/// \file
/// Windows with signals and barriers, for one-sided access by kernels (device/one_sided.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "chorale/device/one_sided.hpp"
#include "chorale/transport.hpp"
#include "chorale/window.hpp"

namespace chorale {

/// Adds signals and barriers to a Window, so that its owner can be told what has been put into it. It is in
/// the memory of hosts or of GPUs. The world must outlive it.
class OneSidedWindow {
 public:
  /// Makes a window; collective. `signals`, `barriers` and `space` are the same on all ranks; `bytes` may
  /// differ.
  /// \throws RunError mismatch, on all ranks, if they are not; otherwise as Window::create(), or
  ///         direct_rendezvous() in device memory
  static OneSidedWindow create(World& world, uint64_t bytes, uint32_t signals, uint32_t barriers,
                               Space space = Space::host);

  OneSidedWindow(OneSidedWindow&&) noexcept;
  OneSidedWindow& operator=(OneSidedWindow&&) noexcept;
  ~OneSidedWindow();

  std::byte* local() const;  ///< null if bytes() of this rank is 0
  uint64_t bytes(int rank) const;

  /// Returns the window as kernels use it. It lives as long as the window.
  WindowView view() const;

  /// Sets signals and barriers back to their state after create(). Collective; call it with no kernel
  /// running, after World::reset(). Otherwise the reports of a stopped launch could let a later barrier pass
  /// before all have come. What has been put into the window stays.
  /// \throws RunError if the world stops
  void reset();

 private:
  struct State;
  explicit OneSidedWindow(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace chorale
