#pragma once
/// \file
/// Every plan keeps these limits. Checks, the DSL, the import and the executor's binding use the same
/// numbers, so each of them can hold any plan that another accepts.

#include <cstdint>

namespace chorale {

/// A buffer has at most this many chunks. Readers of MSCCL++'s format store numbers of chunks in 32 bits. A
/// chunk has at least one byte, so no machine has memory for many more.
inline constexpr uint64_t max_chunks = uint64_t(1) << 32;

/// A buffer has at most this many bytes. No machine has that much memory, and sums of offsets stay below
/// 2^64.
inline constexpr uint64_t max_buffer_bytes = uint64_t(1) << 56;

inline constexpr uint32_t max_ranks = 1 << 16;

/// A rank has at most this many thread blocks. They must all run at once, and no GPU can run so many.
inline constexpr uint32_t max_blocks = 1 << 16;

/// Ids of barriers are below this number, because an executor keeps an array of them.
inline constexpr uint32_t max_barriers = 1 << 16;

/// A program has at most this many instances. No GPU can run so many thread blocks at once.
inline constexpr uint32_t max_instances = 1024;

}  // namespace chorale
