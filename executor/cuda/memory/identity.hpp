/// \file
/// This file finds the allocations that contain a piece of device memory, and how they can be shared.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chorale::cuda {

/// Identifies the allocation, or row of allocations, that contains a buffer. Memory that was freed and
/// allocated again at the same address has another identity.
struct Identity {
  uint64_t buffer_id = 0;        ///< made from CUDA's numbers for it, which are never reused
  uint64_t base = 0, bytes = 0;  ///< the whole allocation or row, not only the buffer
  bool operator==(const Identity&) const = default;
};

/// Says how another process can map an allocation.
enum class Sharing : uint32_t {
  ipc,         ///< cudaMalloc: cudaIpcGetMemHandle
  descriptor,  ///< cuMemCreate with a POSIX file descriptor
  fabric       ///< cuMemCreate with a fabric handle and no descriptor
};

/// Describes one allocation.
struct Segment {
  uint64_t base = 0, bytes = 0, buffer_id = 0;
  Sharing sharing = Sharing::ipc;
  CUmemGenericAllocationHandle handle = 0;  ///< not retained, so valid only while it is mapped; 0 for ipc

  bool operator==(const Segment&) const = default;
};

/// Finds the allocation at `address` and its device. Returns the reason why it cannot be shared, or "" if it
/// can.
std::string find_segment(uint64_t address, Segment& segment, int& device);

/// Describes a buffer and the allocations that contain it.
struct Located {
  std::vector<Segment> segments;  ///< adjacent; empty: the buffer cannot be shared, or has no bytes
  uint64_t offset = 0;            ///< the offset of the buffer in the first segment
  int device = -1;                ///< the device that has the memory
  std::string why_not;  ///< the reason why it cannot be shared, such as "it is host memory"; empty if it can
};

/// Looks up `[pointer, pointer + bytes)`. It never throws because of the memory, whatever the pointer is.
/// \throws RunError if there is no driver
Located locate(const void* pointer, uint64_t bytes);

/// Returns the identity of a buffer. It is empty for memory that peers cannot map: on the host, managed, from
/// a stream-ordered pool, or made without a shareable handle type. Such a buffer is staged. A call takes a
/// few microseconds.
/// \param why_not gets the reason if the result is empty
std::optional<Identity> identity_of(const void* pointer, uint64_t bytes, std::string* why_not = nullptr);

}  // namespace chorale::cuda
