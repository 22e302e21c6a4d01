#pragma once

#include <vector>

#include "chorale/window.hpp"
#include "executor/schedule/backend.hpp"

namespace chorale::schedule_run {

/// Places flags, and tensors that the caller has not given, in one window per rank. Between processes the
/// window also has tensors that peers reach; they are copied from and to the caller's memory.
class CpuMemory {
 public:
  /// Makes the window and finds all addresses. Collective.
  explicit CpuMemory(const Bound& bound);

  const Memory& places() const { return places_; }
  const std::vector<Copy>& before() const { return before_; }  ///< copies before a run
  const std::vector<Copy>& after() const { return after_; }

 private:
  Window window_;
  Memory places_;
  std::vector<Copy> before_, after_;
};

}  // namespace chorale::schedule_run
