#pragma once
/// \file
/// Executor::scale() multiplies by a Factor. Device code includes this header, so it is C++17.

#include <cstdint>

namespace chorale {

/// Holds a factor of the same type as the elements that it multiplies.
struct Factor {
  /// Points to memory of the device, which is read when the work runs. If it is null, `value` is the factor.
  const void* at = nullptr;
  uint64_t value = 0;  ///< the factor, in the first bytes of this member
};

}  // namespace chorale
