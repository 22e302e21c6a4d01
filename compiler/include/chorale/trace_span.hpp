#pragma once
/// \file
/// When one operation ran, or would run.

#include <cstdint>
#include <string>
#include <string_view>

#include "chorale/source_line.hpp"

namespace chorale {

/// When one operation of a thread block ran.
struct TraceSpan {
  std::string plan;
  uint32_t rank = 0, block = 0;
  uint32_t op = 0;                    ///< in the thread block's operations
  std::string_view name;              ///< the operation's, a literal
  SourceLine line;                    ///< the author's; line 0: unknown
  uint64_t launch = 0;                ///< of this plan with these arguments, from 1
  uint64_t begin_ns = 0, end_ns = 0;  ///< of the device's clock, which differs from GPU to GPU
  uint64_t bytes = 0;                 ///< of the message, as in Arguments
};

}  // namespace chorale
