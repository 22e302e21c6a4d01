/// \file
/// Windows with signals and barriers, for one-sided access by kernels (device/one_sided.hpp).
#pragma once

#include <cstdint>
#include <memory>

#include "chorale/device/one_sided.hpp"
#include "chorale/transport.hpp"
#include "chorale/window.hpp"

namespace chorale {

/// A Window whose owner can be told what has been put into it, in the memory of hosts or of GPUs.
class OneSidedWindow {
 public:
  /// Collective. `signals`, `barriers` and `space` are the same on all ranks; `bytes` may differ.
  /// \throws RunError mismatch, on all ranks, if they are not; otherwise as Window::create(), or
  ///         direct_rendezvous() in device memory
  static OneSidedWindow create(World& world, uint64_t bytes, uint32_t signals, uint32_t barriers,
                               Space space = Space::host);

  OneSidedWindow(OneSidedWindow&&) noexcept;
  OneSidedWindow& operator=(OneSidedWindow&&) noexcept;
  ~OneSidedWindow();

  std::byte* local() const;  ///< null if bytes() of this rank is 0
  uint64_t bytes(int rank) const;

  /// For kernels. Lives as long as the window.
  WindowView view() const;

 private:
  struct State;
  explicit OneSidedWindow(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace chorale
