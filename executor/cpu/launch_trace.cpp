#include "launch_trace.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "chorale/error.hpp"

namespace chorale::cpu {

LaunchTrace::LaunchTrace(const Plan& plan, const lowering::BoundImage& image, uint32_t launches)
    : plan_(plan),
      trace_(lowering::trace_of(image, launches)),
      size_(image.blocks.size() * trace_.per_block()),
      // The system zeroes this memory when it is touched. So space for many launches costs little if only a
      // few run.
      entries_(static_cast<TraceEntry*>(std::calloc(std::max<size_t>(size_, 1), sizeof(TraceEntry)))) {
  if (!entries_) {
    throw RunError(
        RunError::Reason::resources,
        fmt::format("a trace of {} launches of plan '{}' needs {} bytes, which cannot be allocated: "
                    "set CHORALE_TRACE to fewer launches",
                    launches, plan.name, size_ * sizeof(TraceEntry)));
  }
  trace_.entries = entries_.get();
}

void LaunchTrace::add_to(std::vector<TraceSpan>& spans, uint32_t rank) const {
  lowering::add_spans(spans, trace_, {entries_.get(), size_}, plan_, rank);
}

}  // namespace chorale::cpu
