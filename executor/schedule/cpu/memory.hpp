/// \file
/// The memory of a schedule's tensors and flags on the CPU.
#pragma once

#include <vector>

#include "../backend.hpp"
#include "chorale/window.hpp"

namespace chorale::hostrun {

/// Flags, and tensors that the caller has not given, lie in one window per rank. Between processes, tensors
/// that peers reach lie there too, and are copied from and to the caller's memory.
class CpuMemory {
 public:
  /// Makes the window and finds all places. Collective.
  explicit CpuMemory(const Bound& bound);

  const Memory& places() const { return places_; }
  const std::vector<Copy>& before() const { return before_; }  ///< copies before a run
  const std::vector<Copy>& after() const { return after_; }

 private:
  Window window_;
  Memory places_;
  std::vector<Copy> before_, after_;
};

}  // namespace chorale::hostrun
