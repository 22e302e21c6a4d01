/// \file
/// Implements --share-gpus for the programs of tests/cuda: if there are fewer GPUs than ranks, several ranks
/// share one. That shows that they work correctly, and says nothing about their speed.
///
/// *As processes* they take turns. A rank that waits for another process keeps the GPU until its time slice
/// is over, which is a few milliseconds. So each answer costs a turn, and nothing can hang that would not
/// hang with one GPU per rank.
/// *As threads of one process* their kernels are resident together. Some calls of CUDA wait for all kernels:
/// allocating and freeing memory, loading a kernel, capturing, and enqueueing when a queue is full. A rank
/// that makes such a call while a kernel waits for a rank that has not launched yet may wait without end.
#pragma once

#include <cstdlib>

namespace chorale::test {

/// Prepares a process whose threads are ranks that share a GPU. Call it before the process touches CUDA.
inline void let_threads_share_gpus() {
  // A kernel cannot be loaded while others run and wait for it. Nor can a copy pass a kernel in the same
  // hardware queue.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
}

}  // namespace chorale::test
