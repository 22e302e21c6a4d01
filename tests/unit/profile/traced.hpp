/// \file
/// Makes spans by hand for small plans.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "chorale/profile.hpp"
#include "tests/unit/compiler/helpers.hpp"

namespace chorale {

constexpr uint64_t traced_bytes = 8192;
constexpr uint64_t traced_launch = 3;

/// Operation `op` of block `on` is at line 10 * on + op + 1 of a.cpp, on every rank.
inline void number_lines(Plan& plan) {
  for (uint32_t line = 1; line <= 100; ++line) plan.source.push_back({"a.cpp", line});
  for (Gpu& gpu : plan.gpus) {
    for (ThreadBlock& block : gpu.threadblocks) {
      for (uint32_t op = 0; op < block.ops.size(); ++op) block.ops[op].at = 10 * block.id + op + 1;
    }
  }
}

/// Each rank puts to the other, signals, and waits for the other's signal: lines 1, 2 and 3.
inline Plan exchange() {
  Plan plan = two_ranks();
  plan.name = "exchange";
  for (const uint32_t rank : {0u, 1u}) {
    add(block(plan, rank), Opcode::put, {in(0)}, {at(1, 0)}, {}, ChannelType::memory);
    add(block(plan, rank), Opcode::signal, {}, {}, {0}, ChannelType::memory);
    add(block(plan, rank), Opcode::wait, {}, {}, {0}, ChannelType::memory);
  }
  number_lines(plan);
  return plan;
}

/// The first operation of a block began at times[0], the second at times[1], and the last one ended at the
/// last time. All are in microseconds.
inline void ran(std::vector<TraceSpan>& spans, const Plan& plan, uint32_t rank, uint32_t on,
                std::vector<uint64_t> times, uint64_t launch = traced_launch) {
  const std::vector<Op>& ops = plan.gpus[rank].threadblocks[on].ops;
  ASSERT_EQ(times.size(), ops.size() + 1);
  for (uint32_t op = 0; op < ops.size(); ++op) {
    spans.push_back({plan.name, rank, on, op, info(ops[op].code).name, plan.line_of(ops[op]), launch,
                     1000 * times[op], 1000 * times[op + 1], traced_bytes});
  }
}

inline Profile profile_of_spans(const Plan& plan, const std::vector<TraceSpan>& spans,
                                Clocks clocks = Clocks::one) {
  return profile(plan, {.bytes = traced_bytes}, spans, clocks);
}

}  // namespace chorale
