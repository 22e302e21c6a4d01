/// \file
/// A LaunchTrace records when the operations of a plan's last launches ran on the CPU.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "executor/lowering/trace_spans.hpp"

namespace chorale::cpu {

class LaunchTrace {
 public:
  /// \param plan copied
  /// \param launches the number of launches that are kept
  /// \throws RunError resources
  LaunchTrace(const Plan& plan, const lowering::BoundImage& image, uint32_t launches);

  /// Returns the trace that blocks write to.
  const Trace& trace() const { return trace_; }

  /// Adds the spans that blocks have written. No launch may be running.
  void add_to(std::vector<TraceSpan>& spans, uint32_t rank) const;

 private:
  struct Free {
    void operator()(TraceEntry* entries) const { std::free(entries); }
  };

  const Plan plan_;
  Trace trace_;
  size_t size_;  ///< the size of entries_
  std::unique_ptr<TraceEntry[], Free> entries_;
};

}  // namespace chorale::cpu
