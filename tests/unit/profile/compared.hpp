/// \file
/// Makes measured and predicted spans by hand.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "chorale/comparison.hpp"
#include "tests/unit/profile/traced.hpp"

namespace chorale {

/// Lists a block's operations that have a span, in order, with their microseconds.
using Took = std::vector<std::pair<uint32_t, uint64_t>>;

inline void took(std::vector<TraceSpan>& spans, const Plan& plan, uint32_t rank, uint32_t on, const Took& ops,
                 uint64_t from = 0, uint64_t launch = traced_launch) {
  const std::vector<Op>& all = plan.gpus[rank].threadblocks[on].ops;
  for (const auto& [op, us] : ops) {
    spans.push_back({plan.name, rank, on, op, info(all[op].code).name, plan.line_of(all[op]), launch,
                     1000 * from, 1000 * (from + us), traced_bytes});
    from += us;
  }
}

/// Compares what one thread block of rank 0 did with the prediction for it.
inline Comparison compare_block(const Plan& plan, const Took& measured, const Took& predicted) {
  std::vector<TraceSpan> ran, simulated;
  took(ran, plan, 0, 0, measured, 100);
  took(simulated, plan, 0, 0, predicted, 0, 1);
  return compare(plan, traced_bytes, ran, Clocks::one, simulated);
}

}  // namespace chorale
