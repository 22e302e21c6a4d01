/// \file
/// The one kernel of exchanges on GPUs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "chorale/resident.cuh"
#include "messages.hpp"

namespace chorale::exchange {

/// What a launch is told by value, so that a graph holds all of it: 4 KiB at most.
struct KernelWork {
  static constexpr uint32_t most_messages = 160;
  Links links;
  Deadline deadline;
  uint32_t n = 0;
  bool next_beside = false;  ///< the next launch in the stream may come to its turn while this one runs
  Message messages[most_messages];
};
static_assert(sizeof(KernelWork) <= 4096);

/// With more a thread would not hold in registers what it moves at a time, where two blocks share a
/// multiprocessor.
inline constexpr unsigned kernel_threads = 384;

/// Whether it could be enqueued.
cudaError_t enqueue_exchange(const KernelWork& work, uint32_t blocks, cudaStream_t stream);

/// Loads the kernel as well: CUDA waits for what runs, to do that, which may wait for this rank.
/// \param found  of it on the current device
cudaError_t resident_exchange_blocks(chorale::detail::Resident& found);

}  // namespace chorale::exchange
