/// \file
/// Exchanges on GPUs have this one kernel.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "chorale/resident.cuh"
#include "messages.hpp"

namespace chorale::exchange {

/// Holds what a launch passes by value, so that a graph holds all of it: 4 KiB at most.
struct KernelWork {
  static constexpr uint32_t most_messages = 160;
  Links links;
  Deadline deadline;
  uint32_t n = 0;
  bool next_beside = false;  ///< the next launch in the stream may come to its turn while this one runs
  Message messages[most_messages];
};
static_assert(sizeof(KernelWork) <= 4096);

/// A thread of a larger block could not hold in registers what it moves at a time, when two blocks share a
/// multiprocessor.
inline constexpr unsigned kernel_threads = 384;

/// Enqueues the kernel on `stream`. Returns CUDA's error if that fails.
cudaError_t enqueue_exchange(const KernelWork& work, uint32_t blocks, cudaStream_t stream);

/// Finds how many blocks of the kernel the current device holds. This loads the kernel as well. CUDA waits
/// for running kernels before it loads, and they may wait for this rank.
/// \param found  gets the result for the current device
cudaError_t resident_exchange_blocks(chorale::detail::Resident& found);

}  // namespace chorale::exchange
