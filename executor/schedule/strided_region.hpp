/// \file
/// A StridedRegion is a strided region: it says where a part of a message is, in storage and in the message.
/// For host and device code.
#pragma once

#include <cstdint>

namespace chorale::schedule_run {

/// Holds `rows` runs of `bytes` bytes each, at the given pitches; in the message they follow each other. The
/// function that makes a StridedRegion says whether `to` and `from` are offsets or addresses.
struct StridedRegion {
  uint64_t to = 0, from = 0;
  uint64_t bytes = 0, rows = 1, to_pitch = 0, from_pitch = 0;
  uint64_t begin = 0;  ///< the position of its first byte in the message
};

}  // namespace chorale::schedule_run
