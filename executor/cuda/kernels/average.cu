// This kernel does the division at the end of an average. It is a separate kernel because nothing else
// divides, and because it must run after the last operation of every block.
#include <cuda_runtime_api.h>

#include "chorale/device/numeric.hpp"
#include "executor/cuda/device/enqueue.cuh"

namespace chorale::cuda {
namespace {

constexpr unsigned threads = 256, most_blocks = 512;

__global__ void divide(void* data, uint64_t n, DType dtype, uint32_t ranks) {
  with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const elements = static_cast<T*>(data);
    const uint64_t stride = uint64_t(gridDim.x) * blockDim.x;
    for (uint64_t at = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; at < n; at += stride) {
      elements[at] = narrow<T>(finish_avg<T>(widen(elements[at]), ranks));
    }
  });
}

}  // namespace

cudaError_t load_average() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, divide);
}

cudaError_t enqueue_average(void* elements, uint64_t n, DType dtype, uint32_t ranks, cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  const uint64_t wanted = (n + threads - 1) / threads;
  const unsigned blocks = unsigned(wanted < most_blocks ? wanted : most_blocks);
  return enqueue(divide, blocks, threads, stream, elements, n, dtype, ranks);
}

}  // namespace chorale::cuda
