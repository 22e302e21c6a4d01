#pragma once
/// \file
/// What MSCCL++'s executor holds. It checks the first of these alone; past the others it
/// overwrites memory, wraps around or hangs.

#include <cstdint>

namespace chorale::mscclpp {

inline constexpr uint32_t max_block_operations = 64;  ///< of a thread block; a pipeline is one and its body
inline constexpr uint32_t max_operands = 10;          ///< sources of an operation, and also destinations
inline constexpr uint32_t max_channels = 8;           ///< channel ids of an operation
inline constexpr uint32_t max_semaphores = 16;        ///< semaphore ids of an operation
inline constexpr uint32_t max_block_channels = 16;    ///< of a thread block, by type
inline constexpr uint32_t max_block_remote_buffers = 16;  ///< of a thread block, by channel type
inline constexpr uint32_t max_barriers = 16;              ///< of a device
inline constexpr uint32_t max_port_channels = 1024;       ///< of a rank: 10 bits in a trigger
/// Of a rank, reached over port channels: 9 bits in a trigger, less input, output and scratch of its own.
inline constexpr uint32_t max_port_buffers = 512 - 3;
inline constexpr uint64_t max_turns = 65535;       ///< of a pipeline: a 16-bit counter
inline constexpr uint64_t max_bytes = UINT32_MAX;  ///< sizes, offsets and counts of chunks
/// min_message_size, buffer_alignment, and the first values of semaphores are read as ints.
inline constexpr uint64_t max_int = INT32_MAX;
inline constexpr uint64_t reused_scratch_bytes = 64 << 20;  ///< of plain data, with resources reused
/// Of the alignment, and of the units of pipelines: what is left behind vectors is reduced wrongly, and what
/// is copied begins at places of equal remainder.
inline constexpr uint64_t vector_bytes = 16;

}  // namespace chorale::mscclpp
