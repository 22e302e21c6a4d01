/// \file
/// A LaunchTrace records when the operations of a plan's last launches ran.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/cuda/device/device_memory.hpp"
#include "executor/lowering/trace_spans.hpp"

namespace chorale::cuda {

class LaunchTrace {
 public:
  /// \param launches the number of launches that are kept
  LaunchTrace(const lowering::BoundImage& image, uint32_t launches);

  /// Returns the trace that blocks write to.
  const Trace& trace() const { return trace_; }

  /// Adds the spans that blocks have written, with the lines of `plan`. Waits for the device.
  void add_to(std::vector<TraceSpan>& spans, const Plan& plan, uint32_t rank) const;

 private:
  Trace trace_;
  size_t entries_;
  DeviceMemory memory_;
};

}  // namespace chorale::cuda
