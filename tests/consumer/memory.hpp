// The applications use these wrappers of CUDA, which also exist for builds of Chorale without CUDA.
#pragma once

#include <chorale/executor.hpp>
#include <cstring>
#include <stdexcept>
#include <vector>

#if defined(CHORALE_WITH_CUDA)
#include <cuda_runtime.h>

inline void must(cudaError_t result) {
  if (result != cudaSuccess) throw std::runtime_error(cudaGetErrorString(result));
}

/// Returns the number of GPUs of this machine; 0 also if there is no driver.
inline int gpus() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

/// Makes a GPU current. An executor takes the GPU that is current in its thread when it is made.
inline void use_gpu(int number) { must(cudaSetDevice(number)); }

/// Copies to or from memory of the executor's backend, which is the CPU's if there is no GPU.
inline void copy(void* to, const void* from, size_t bytes) {
  if (gpus() == 0) {
    std::memcpy(to, from, bytes);
    return;
  }
  must(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
}

#else

inline int gpus() { return 0; }
inline void use_gpu(int) {}
inline void copy(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }

#endif

/// Runs an all-reduce of `rank + 1` over all ranks several times and counts the elements that are wrong.
inline size_t wrong_sums(chorale::World& world, chorale::Executor& executor, const chorale::Plan& plan) {
  const std::vector<float> ones(1001, float(world.rank() + 1));
  const size_t bytes = ones.size() * sizeof(float);
  const float expected = float(world.ranks() * (world.ranks() + 1) / 2);
  // Any memory is allowed. On every backend peers reach the memory of allocate() without a copy.
  void* const x = executor.allocate(bytes);
  void* const y = executor.allocate(bytes);
  copy(x, ones.data(), bytes);
  size_t wrong = 0;
  for (int time = 0; time < 3; ++time) {
    // The first call binds, later ones only launch. A CUDA stream is the third argument.
    executor.execute(plan, {.in = x, .out = y, .bytes = bytes});
    executor.synchronize();  // throws any error of the run
    std::vector<float> sums(ones.size());
    copy(sums.data(), y, bytes);
    for (const float sum : sums) wrong += sum != expected;
  }
  return wrong;
}
