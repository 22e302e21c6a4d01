#pragma once
/// \file
/// What no plan may exceed.

#include <cstdint>

namespace chorale {

/// Of one buffer: more than any memory holds, and small enough for sums to stay below 2^64.
inline constexpr uint64_t max_chunks = uint64_t(1) << 47;

/// Ids of barriers are less: an executor keeps an array of them.
inline constexpr uint32_t max_barriers = 1 << 16;

/// More instances than thread blocks fit on any GPU.
inline constexpr uint32_t max_instances = 1024;

}  // namespace chorale
