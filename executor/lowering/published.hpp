/// \file
/// Ranks publish where their buffers are, so that a device program serves any buffers. C++17, host and
/// device.
#pragma once

#include <cstdint>

namespace chorale::lowering {

/// Tells a peer where a rank's input and output are in a run. On GPUs they are addresses at the peer. On the
/// CPU the peer computes its addresses from them.
struct alignas(128) Published {
  uint64_t epoch = 0;  ///< the run that `in` and `out` belong to; written last
  uint64_t in = 0, out = 0;
};

}  // namespace chorale::lowering
