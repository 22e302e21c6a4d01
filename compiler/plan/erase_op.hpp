#pragma once

#include <cstdint>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale {

/// Erases the operation at a position. If it is in a pipeline, the body gets shorter by one.
inline void erase_op(std::vector<Op>& ops, uint32_t at) {
  for (uint32_t loop = 0; loop < at; ++loop) {
    if (ops[loop].body && at <= loop + ops[loop].body) --ops[loop].body;
  }
  ops.erase(ops.begin() + at);
}

}  // namespace chorale
