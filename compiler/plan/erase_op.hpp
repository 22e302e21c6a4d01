#pragma once
/// \file
/// Takes an operation out of a thread block.

#include <cstdint>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale {

/// Erases the operation at a position; a pipeline that it is in has one less in its body.
inline void erase_op(std::vector<Op>& ops, uint32_t at) {
  for (uint32_t loop = 0; loop < at; ++loop) {
    if (ops[loop].body && at <= loop + ops[loop].body) --ops[loop].body;
  }
  ops.erase(ops.begin() + at);
}

}  // namespace chorale
