/// \file
/// Kernels of host schedules.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "chorale/types.hpp"

namespace chorale::hostrun {

struct Carry;
struct CarryLaunch;
struct Strip;

inline constexpr uint32_t most_axes = 6;

/// Where the elements of a view are; strides in elements.
struct Strided {
  void* data = nullptr;
  DType dtype = DType::f32;
  uint64_t strides[most_axes] = {};
};

/// Work on `elements` elements of `axes` axes: of `out`, from `a` and `b` where there are such.
struct Elementwise {
  uint32_t axes = 0;
  uint64_t shape[most_axes] = {};
  uint64_t elements = 1;
  Strided out, a, b;
  uint64_t extent = 0, step = 0;  ///< sum: of the axis that goes, in `a`
  int64_t value = 0;              ///< fill
};

// All return whether they could be enqueued.

cudaError_t enqueue_add(const Elementwise& work, cudaStream_t stream);
cudaError_t enqueue_sum(const Elementwise& work, cudaStream_t stream);
cudaError_t enqueue_cast(const Elementwise& work, cudaStream_t stream);
cudaError_t enqueue_fill(const Elementwise& work, cudaStream_t stream);

/// All blocks of a carry. One without blocks only loads the kernel.
cudaError_t enqueue_carry(const Carry& work, const CarryLaunch& launch, cudaStream_t stream);
/// \param blocks  of that kernel that the current device holds at a time
cudaError_t resident_carry_blocks(uint64_t& blocks);

/// A copy by threads; `strip` has addresses.
cudaError_t enqueue_copy(const Strip& strip, uint32_t blocks, cudaStream_t stream);

/// Adds one to `count`, which only this stream writes.
cudaError_t enqueue_count(uint64_t* count, cudaStream_t stream);

}  // namespace chorale::hostrun
