/// \file
/// Ranks publish where their buffers are, so that a device program serves any buffers. C++17, host and
/// device.
#pragma once

#include <cstdint>

#include "chorale/device/macros.hpp"

namespace chorale::lowering {

/// Says how many bytes are between the parts of a buffer. Programs count offsets as if parts were adjacent. A
/// piece of a long message is a range of each part, so its parts are apart in the caller's memory.
struct Gaps {
  uint64_t part_bytes = 0;  ///< of the piece; used only with gaps
  uint64_t in = 0, out = 0;

  /// Returns where an offset is in a buffer with these gaps.
  static CHORALE_HD uint64_t add(uint64_t offset, uint64_t part_bytes, uint64_t gap) {
    return gap == 0 ? offset : offset + offset / part_bytes * gap;
  }
};

/// Tells a peer where a rank's input and output are in a run. On GPUs they are addresses at the peer. On the
/// CPU the peer computes its addresses from them.
struct alignas(128) Published {
  uint64_t epoch = 0;  ///< the run that `in` and `out` belong to; written last
  uint64_t in = 0, out = 0;
  uint64_t in_gap = 0, out_gap = 0;  ///< see Gaps
};

}  // namespace chorale::lowering
