/// \file
/// What a piece of device memory is: which allocations it lies in, and how they can be shared.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chorale::cuda {

/// The allocation, or row of allocations, that a buffer lies in. Memory that was freed and made again at the
/// same address has another one.
struct Identity {
  uint64_t buffer_id = 0;        ///< drawn from CUDA's numbers of it, which are never given again
  uint64_t base = 0, bytes = 0;  ///< all of it, not only the buffer
  bool operator==(const Identity&) const = default;
};

/// How an allocation can be mapped by another process.
enum class Sharing : uint32_t {
  ipc,         ///< cudaMalloc: cudaIpcGetMemHandle
  descriptor,  ///< cuMemCreate with a POSIX file descriptor
  fabric       ///< cuMemCreate with a fabric handle, and no descriptor
};

/// One allocation.
struct Segment {
  uint64_t base = 0, bytes = 0, buffer_id = 0;
  Sharing sharing = Sharing::ipc;
  CUmemGenericAllocationHandle handle = 0;  ///< not retained: good while it is mapped; 0 for ipc

  bool operator==(const Segment&) const = default;
};

/// The allocation at `address` and its device; returns why it cannot be shared, if so.
std::string find_segment(uint64_t address, Segment& segment, int& device);

/// A buffer and what it lies in.
struct Located {
  std::vector<Segment> segments;  ///< adjacent; empty: cannot be shared, or no bytes
  uint64_t offset = 0;            ///< of the buffer in the first segment
  int device = -1;                ///< where the memory is
  std::string why_not;            ///< why it cannot be shared, as "it is host memory"; empty if it can
};

/// Looks `[pointer, pointer + bytes)` up. Never throws for the sake of the memory, be it any pointer at all.
/// \throws RunError if there is no driver
Located locate(const void* pointer, uint64_t bytes);

/// Empty for memory that peers cannot map (on the host, managed, of a stream-ordered pool, made without a
/// shareable handle type): such a buffer is staged. Costs a few microseconds.
/// \param why_not  then gets the reason
std::optional<Identity> identity_of(const void* pointer, uint64_t bytes, std::string* why_not = nullptr);

}  // namespace chorale::cuda
