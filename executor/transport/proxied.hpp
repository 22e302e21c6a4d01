/// \file
/// A Proxied carries out a rank's orders while its kernels run.
#pragma once

#include <atomic>

#include "chorale/device/group.hpp"

namespace chorale {

class Proxied {
 public:
  virtual ~Proxied() = default;

  // A launch calls these before and after it. When end() returns, all orders have been carried out or, after
  // a stop, dropped.
  virtual void begin() = 0;
  virtual void end(bool stopped) = 0;

  /// Carries out orders until `threads_left` is 0 and no order is left. It is the body of a fiber beside the
  /// blocks, in place of a thread, when everything runs from a seed.
  virtual void run_fiber(HostBlock& host, const std::atomic<int>& threads_left) = 0;
};

}  // namespace chorale
