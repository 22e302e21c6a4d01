/// \file
/// Strip: where a part of a message lies, in storage and in the message. Of host and device code.
#pragma once

#include <cstdint>

namespace chorale::hostrun {

/// `rows` runs of `bytes` bytes, the pitches apart; in the message they follow each other. `to` and `from`
/// are offsets, or addresses, as whoever made it says.
struct Strip {
  uint64_t to = 0, from = 0;
  uint64_t bytes = 0, rows = 1, to_pitch = 0, from_pitch = 0;
  uint64_t begin = 0;  ///< of its first byte in the message
};

}  // namespace chorale::hostrun
