/// \file
/// Where a schedule's tensors and flags are on the CPU.
#pragma once

#include <vector>

#include "../backend.hpp"
#include "chorale/window.hpp"

namespace chorale::hostrun {

/// Flags, and the tensors that the caller has not given, lie in one window a rank. Between processes what
/// peers reach lies there, too, and is copied from and to the caller's memory.
class CpuMemory {
 public:
  /// Collective.
  explicit CpuMemory(const Bound& bound);

  const Memory& places() const { return places_; }
  const std::vector<Copy>& before() const { return before_; }  ///< of a run
  const std::vector<Copy>& after() const { return after_; }

 private:
  Window window_;
  Memory places_;
  std::vector<Copy> before_, after_;
};

}  // namespace chorale::hostrun
