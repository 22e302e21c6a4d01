#include "trace.hpp"

#include "executor/cuda/device/error.hpp"

namespace chorale::cuda {

LaunchTrace::LaunchTrace(const lowering::BoundImage& image, uint32_t launches)
    : trace_(lowering::trace_of(image, launches)),
      entries_(image.blocks.size() * trace_.per_block()),
      memory_(entries_ * sizeof(TraceEntry), "a trace") {
  trace_.entries = reinterpret_cast<TraceEntry*>(memory_.data());
}

void LaunchTrace::add_to(std::vector<TraceSpan>& spans, const Plan& plan, uint32_t rank) const {
  check(cudaDeviceSynchronize(), "waiting for traced launches");
  std::vector<TraceEntry> entries(entries_);
  check(
      cudaMemcpy(entries.data(), memory_.data(), entries.size() * sizeof(TraceEntry), cudaMemcpyDeviceToHost),
      "reading a trace");
  lowering::add_spans(spans, trace_, entries, plan, rank);
}

}  // namespace chorale::cuda
