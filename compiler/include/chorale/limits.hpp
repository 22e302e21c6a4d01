#pragma once
/// \file
/// The limits of every plan. Checks, the DSL, the import and the executor's binding take them from here, so a
/// plan that one of them accepts is none that another one cannot hold.

#include <cstdint>

namespace chorale {

/// Chunks of one buffer. Readers of MSCCL++'s format hold the numbers of chunks in 32 bits, and a chunk has
/// at least one byte: no machine has room for many more.
inline constexpr uint64_t max_chunks = uint64_t(1) << 32;

/// Bytes of one buffer. More than any memory holds, and small enough for sums of offsets to stay below 2^64.
inline constexpr uint64_t max_buffer_bytes = uint64_t(1) << 56;

inline constexpr uint32_t max_ranks = 1 << 16;

/// Thread blocks of one rank. A launch needs all of them at once, and no GPU holds as many.
inline constexpr uint32_t max_blocks = 1 << 16;

/// Ids of barriers are less: an executor keeps an array of them.
inline constexpr uint32_t max_barriers = 1 << 16;

/// More instances than thread blocks fit on any GPU.
inline constexpr uint32_t max_instances = 1024;

}  // namespace chorale
