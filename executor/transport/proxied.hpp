/// \file
/// Proxied: what carries out a rank's orders while its kernels run.
#pragma once

#include <atomic>

#include "chorale/device/group.hpp"

namespace chorale {

class Proxied {
 public:
  virtual ~Proxied() = default;

  /// Around a launch. When end() returns all orders have been carried out, or, after a stop, dropped.
  virtual void begin() = 0;
  virtual void end(bool stopped) = 0;

  /// Instead of a thread, where everything runs from a seed: the body of a fiber beside the blocks, until
  /// `threads_left` is 0 and no order is left.
  virtual void run_fiber(HostBlock& host, const std::atomic<int>& threads_left) = 0;
};

}  // namespace chorale
