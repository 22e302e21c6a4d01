#pragma once
/// \file
/// Finds how many thread blocks of a kernel a GPU holds at a time.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace chorale::detail {

struct Resident {
  int per_multiprocessor = 0, multiprocessors = 0;
  uint64_t blocks() const { return uint64_t(per_multiprocessor) * uint64_t(multiprocessors); }
};

/// Finds the number of resident blocks for blocks of `threads` threads and `shared_bytes` of dynamic shared
/// memory. Returns CUDA's result.
inline cudaError_t find_resident(const void* kernel, uint32_t threads, uint64_t shared_bytes, int device,
                                 Resident& found) {
  const cudaError_t result =
      cudaDeviceGetAttribute(&found.multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (result != cudaSuccess) return result;
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&found.per_multiprocessor, kernel, int(threads),
                                                       shared_bytes);
}

}  // namespace chorale::detail
