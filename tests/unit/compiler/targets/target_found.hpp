/// \file
/// Runs the checks of MSCCL++'s executor for target_*_test.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/compiler/helpers.hpp"

namespace chorale {

/// Returns the target's findings in a plan that the other checks accept.
inline std::string found(const Plan& plan, const std::vector<std::string>& allow = {}) {
  Diagnostics others;
  pass::structure(plan, others);
  pass::bounds(plan, others);
  EXPECT_EQ(all_texts(others), "");
  return all_texts(check(plan, Target::mscclpp, allow));
}

inline void pipeline_of(Plan& plan, uint32_t body) {
  Op& op = add(block(plan), Opcode::pipeline);
  op.body = body;
  op.unit_bytes = 64;
  op.chunks = 1;
}

}  // namespace chorale
