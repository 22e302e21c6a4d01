/// \file
/// These functions enqueue the kernels of host schedules.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "chorale/types.hpp"

namespace chorale::schedule_run {

struct Copy;

inline constexpr uint32_t most_axes = 6;

/// Describes the elements of a view; strides are in elements.
struct Strided {
  void* data = nullptr;
  DType dtype = DType::f32;
  uint64_t strides[most_axes] = {};
};

/// Describes work that computes the `elements` elements of `out`, with `axes` axes, from `a` and `b` if it
/// uses them.
struct Elementwise {
  uint32_t axes = 0;
  uint64_t shape[most_axes] = {};
  uint64_t elements = 1;
  Strided out, a, b;
  uint64_t extent = 0, step = 0;  ///< sum: the summed axis of `a`
  int64_t value = 0;              ///< fill: the value
};

// Each function returns the CUDA result of enqueueing.

cudaError_t enqueue_add(const Elementwise& work, cudaStream_t stream);
cudaError_t enqueue_sum(const Elementwise& work, cudaStream_t stream);
cudaError_t enqueue_cast(const Elementwise& work, cudaStream_t stream);
cudaError_t enqueue_fill(const Elementwise& work, cudaStream_t stream);

/// Enqueues a copy by threads.
cudaError_t enqueue_copy(const Copy& copy, uint32_t blocks, cudaStream_t stream);

/// Adds one to `count`, which only this CUDA stream writes.
cudaError_t enqueue_count(uint64_t* count, cudaStream_t stream);

}  // namespace chorale::schedule_run
