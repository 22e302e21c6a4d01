/// \file
/// Ranks publish where their buffers are, so that a device program serves any buffers. C++17, host and
/// device.
#pragma once

#include <cstdint>

namespace chorale::lowering {

/// Tells a peer where a rank's input and output are in a run. The words are addresses that are valid at the
/// peer, or numbers from which the peer gets them.
struct alignas(128) Published {
  uint64_t epoch = 0;  ///< the run that `in` and `out` belong to; written last
  uint64_t in = 0, out = 0;
};

}  // namespace chorale::lowering
