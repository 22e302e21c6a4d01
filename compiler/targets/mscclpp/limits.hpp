#pragma once
/// \file
/// These are the limits of MSCCL++'s executor. It checks only the first one. Past the others it overwrites
/// memory, wraps around or hangs.

#include <cstdint>

namespace chorale::mscclpp {

inline constexpr uint32_t max_block_operations = 64;  ///< of a thread block; pipelines and their bodies count
inline constexpr uint32_t max_operands = 10;          ///< sources of an operation, and also destinations
inline constexpr uint32_t max_channels = 8;           ///< channel ids of an operation
inline constexpr uint32_t max_semaphores = 16;        ///< semaphore ids of an operation
inline constexpr uint32_t max_block_channels = 16;    ///< of a thread block, by type
inline constexpr uint32_t max_block_remote_buffers = 16;  ///< of a thread block, by channel type
inline constexpr uint32_t max_barriers = 16;              ///< of a device
inline constexpr uint32_t max_port_channels = 1024;       ///< of a rank: 10 bits in a trigger
/// Limits the buffers that a rank accesses over port channels. A trigger has 9 bits for them, and they
/// include the rank's own input, output and scratch.
inline constexpr uint32_t max_port_buffers = 512 - 3;
inline constexpr uint64_t max_turns = 65535;       ///< of a pipeline: a 16-bit counter
inline constexpr uint64_t max_bytes = UINT32_MAX;  ///< sizes, offsets and counts of chunks
/// An int holds at most this value. min_message_size, buffer_alignment, and the first values of semaphores
/// are read as ints.
inline constexpr uint64_t max_int = INT32_MAX;
inline constexpr uint64_t reused_scratch_bytes = 64 << 20;  ///< of plain data, with resources reused
/// The alignment and the units of pipelines must be multiples of this number of bytes. MSCCL++ reduces
/// elements after the last whole vector wrongly, and copies only between places of equal remainder.
inline constexpr uint64_t vector_bytes = 16;

}  // namespace chorale::mscclpp
