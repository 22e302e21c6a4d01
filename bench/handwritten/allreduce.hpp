/// \file
/// Implements the packet all-reduces as kernels written by hand, on the device headers that plans run on. The
/// time that they save compared with a plan is the cost of interpreting.
///
/// They keep the plans' guarantees. Sums are in rank order, with the same bits on every rank. There is no
/// host synchronisation, and no argument changes from launch to launch, so a CUDA graph may replay them.
/// Every wait ends.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "chorale/device/deadline.hpp"
#include "chorale/types.hpp"

namespace chorale::handwritten {

constexpr uint32_t most_ranks = 8;
constexpr uint32_t most_threads = 512;

/// Holds the arguments that one rank's launches have in common. Every rank has the same capacity, blocks and
/// threads. These must stay the same as long as the scratch and the epochs do, because the units of a block,
/// and so the flags that it waits for, follow from them.
struct AllReduce {
  uint32_t rank = 0, ranks = 1;
  uint32_t blocks = 8, threads = most_threads;
  uint64_t capacity = 0;  ///< the bytes of the largest message
  /// Points to each rank's scratch, at its address in this process. Each has *_scratch_bytes() bytes, zero
  /// before the first launch.
  char* scratch[most_ranks] = {};
  uint64_t* epochs = nullptr;  ///< one per block, in this device's memory, zero before the first launch
  Deadline deadline;           ///< the deadline of each wait; the device must be able to read its abort word
};

uint64_t one_shot_scratch_bytes(uint32_t ranks, uint64_t capacity);
uint64_t two_shot_scratch_bytes(uint32_t ranks, uint64_t capacity);

/// Enqueues the sum of all ranks' `bytes` bytes at `in`, of f32 or bf16, to `out`, which may be `in`. A wait
/// that ends without its packet raises the abort word. You cannot use the scratch and the epochs after that.
/// \returns cudaErrorInvalidValue for another type, ranks other than 2, 4 or 8, more bytes than the capacity,
/// or too many threads
cudaError_t launch_one_shot(const AllReduce& with, const void* in, void* out, uint64_t bytes, DType dtype,
                            cudaStream_t stream);
cudaError_t launch_two_shot(const AllReduce& with, const void* in, void* out, uint64_t bytes, DType dtype,
                            cudaStream_t stream);

}  // namespace chorale::handwritten
