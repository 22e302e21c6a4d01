/// \file
/// Defines what the workloads share on the GPU.
#pragma once

#include <chorale/launch.cuh>
#include <cstdint>

#include "bench/fused/harness.hpp"

namespace chorale::fused_bench {

/// Owns device memory that grows on demand.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;

  void resize(uint64_t n) {
    cudaFree(data_);
    data_ = nullptr;
    check(cudaMalloc(reinterpret_cast<void**>(&data_), n * sizeof(T)), "a buffer");
  }
  T* data() const { return data_; }

 private:
  T* data_ = nullptr;
};

/// Calls make(index) for each element, from as many threads as are useful.
template <class Make>
__global__ void for_each(uint64_t n, Make make) {
  for (uint64_t at = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; at < n;
       at += uint64_t(gridDim.x) * blockDim.x) {
    make(at);
  }
}
template <class Make>
void enqueue_for_each(cudaStream_t stream, uint64_t n, const Make& make) {
  const uint64_t blocks = (n + 255) / 256;
  for_each<<<uint32_t(blocks < 1024 ? blocks : 1024), 256, 0, stream>>>(n, make);
  check(cudaGetLastError(), "a kernel over elements");
}

__device__ inline void add(uint64_t* to, uint64_t value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));
}

}  // namespace chorale::fused_bench
