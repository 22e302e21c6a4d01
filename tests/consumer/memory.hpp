// What the applications need of CUDA, with a form for builds of Chorale that have none.
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

/// GPUs of this machine; 0 if there is no driver either.
inline int gpus() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

/// An executor takes the GPU that is current in its thread when it is made.
inline void use_gpu(int number) { must(cudaSetDevice(number)); }

/// To or from memory of the executor's backend, which is the CPU's where there is no GPU to ask.
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
  // Any memory will do; that of allocate() is reached by the peers without a copy on every backend.
  void* const x = executor.allocate(bytes);
  void* const y = executor.allocate(bytes);
  copy(x, ones.data(), bytes);
  size_t wrong = 0;
  for (int time = 0; time < 3; ++time) {
    // Binds the first time, then only launches; a CUDA stream is the third argument.
    executor.execute(plan, {.in = x, .out = y, .bytes = bytes});
    executor.synchronize();  // throws what has gone wrong on the way
    std::vector<float> sums(ones.size());
    copy(sums.data(), y, bytes);
    for (const float sum : sums) wrong += sum != expected;
  }
  return wrong;
}
