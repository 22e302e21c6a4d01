/// \file
/// All exchanges on GPUs use one kernel.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "chorale/resident.cuh"
#include "messages.hpp"

namespace chorale::exchange {

/// Holds all arguments of a launch. A launch passes it by value, so that a graph contains all of it. It takes
/// at most 4 KiB.
struct KernelWork {
  static constexpr uint32_t most_messages = 160;
  Links links;
  Deadline deadline;
  uint32_t n = 0;
  bool next_beside = false;  ///< the next launch in the stream may start while this one runs, and then waits
                             ///< for its turn
  Message messages[most_messages];
};
static_assert(sizeof(KernelWork) <= 4096);

/// With more threads, and two blocks on one multiprocessor, a thread could not hold in registers the data
/// that it moves at a time.
inline constexpr unsigned kernel_threads = 384;

/// Enqueues the kernel on `stream`. Returns CUDA's error if that fails.
cudaError_t enqueue_exchange(const KernelWork& work, uint32_t blocks, cudaStream_t stream);

/// Finds how many blocks of the kernel the current device holds. It also loads the kernel, so that a later
/// launch need not. To load a kernel, CUDA waits for running kernels, and these may wait for this rank.
/// \param found  gets the result for the current device
cudaError_t resident_exchange_blocks(chorale::detail::Resident& found);

}  // namespace chorale::exchange
