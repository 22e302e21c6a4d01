/// \file
/// When the operations of a plan's last launches ran.
#pragma once

#include <cstdint>
#include <vector>

#include "chorale/executor.hpp"
#include "device_memory.hpp"
#include "tape.hpp"

namespace chorale::cuda {

class LaunchTrace {
 public:
  /// \param launches  that are kept
  LaunchTrace(size_t blocks, uint32_t most_operations, uint32_t launches);

  /// What blocks write to.
  const Trace& trace() const { return trace_; }

  /// Adds what was written, with the lines of `plan`. Waits for the device.
  void add_to(std::vector<TraceSpan>& spans, const Plan& plan, uint32_t rank) const;

 private:
  size_t blocks_;
  DeviceMemory memory_;
  Trace trace_;
};

}  // namespace chorale::cuda
