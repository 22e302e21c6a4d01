#pragma once
/// \file
/// A span says when one operation ran, or would run.

#include <cstdint>
#include <string>
#include <string_view>

#include "chorale/source_line.hpp"

namespace chorale {

/// Says when one operation of a thread block ran.
struct TraceSpan {
  std::string plan;
  uint32_t rank = 0, block = 0;
  uint32_t op = 0;                    ///< position in the thread block's operations
  std::string_view name;              ///< name of the operation, a literal
  SourceLine line;                    ///< the author's; line 0: unknown
  uint64_t launch = 0;                ///< number of the launch of this plan with these arguments, from 1
  uint64_t begin_ns = 0, end_ns = 0;  ///< on the device's clock, which differs from GPU to GPU
  uint64_t bytes = 0;                 ///< size of the message, as in Arguments
};

}  // namespace chorale
