/// \file
/// A Proxied carries out a rank's orders while the rank's kernels run.
#pragma once

#include <atomic>

#include "chorale/device/group.hpp"

namespace chorale {

class Proxied {
 public:
  virtual ~Proxied() = default;

  // A launch calls begin() before and end() after it runs. When end() returns, all orders have been carried
  // out or, after a stop, dropped.
  virtual void begin() = 0;
  virtual void end(bool stopped) = 0;

  /// Carries out orders until `threads_left` is 0 and no order is left. In a world with a seed, a fiber runs
  /// it instead of a thread.
  virtual void run_fiber(HostBlock& host, const std::atomic<int>& threads_left) = 0;
};

}  // namespace chorale
