#pragma once
/// \file
/// A factor for Executor::scale(). Device code includes this file, so it is C++17.

#include <cstdint>

namespace chorale {

/// Holds a factor, which has the type of the elements.
struct Factor {
  const void* at = nullptr;  ///< where it is when the work runs, memory of the device; null: it is `value`
  uint64_t value = 0;        ///< the bytes of the factor, from the first byte of this member on
};

}  // namespace chorale
