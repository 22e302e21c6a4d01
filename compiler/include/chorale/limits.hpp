#pragma once
/// \file
/// These are the limits of every plan. Checks, the DSL, the import and the executor's binding take them from
/// here, so that all of them can hold a plan that one of them accepts.

#include <cstdint>

namespace chorale {

/// A buffer has at most this many chunks. Readers of MSCCL++'s format hold the numbers of chunks in 32 bits,
/// and a chunk has at least one byte, so no machine has room for many more.
inline constexpr uint64_t max_chunks = uint64_t(1) << 32;

/// A buffer has at most this many bytes. No memory holds as much, and sums of offsets stay below 2^64.
inline constexpr uint64_t max_buffer_bytes = uint64_t(1) << 56;

inline constexpr uint32_t max_ranks = 1 << 16;

/// A rank has at most this many thread blocks. A launch needs all of them at once, and no GPU holds as many.
inline constexpr uint32_t max_blocks = 1 << 16;

/// Ids of barriers are less than this, because an executor keeps an array of them.
inline constexpr uint32_t max_barriers = 1 << 16;

/// A program has at most this many instances. No GPU has room for as many thread blocks.
inline constexpr uint32_t max_instances = 1024;

}  // namespace chorale
