/// \file
/// A Copy says which bytes go where. For host and device code.
#pragma once

#include <cstdint>

namespace chorale::schedule_run {

/// Describes a copy of `rows` runs of `bytes` bytes each, at the given pitches.
struct Copy {
  char* to = nullptr;
  const char* from = nullptr;
  uint64_t bytes = 0, rows = 1, to_pitch = 0, from_pitch = 0;
};

}  // namespace chorale::schedule_run
