/// \file
/// The programs of tests/cuda take --share-gpus: if there are fewer GPUs than ranks, several ranks then share
/// one. That shows that they work right, and nothing about their speed.
///
/// *As processes* they take turns. A rank that waits for another process keeps the GPU until its time slice
/// is over, a few milliseconds. So each answer costs a turn, and nothing can hang that would not hang with a
/// GPU each.
/// *As threads of one process* they have their kernels there together. Some calls of CUDA wait for all
/// kernels: to make and free memory, to load a kernel, to capture, and to enqueue when a queue is full. A
/// rank that makes such a call while a kernel waits for a rank that has not launched yet may wait for ever.
#pragma once

#include <cstdlib>

namespace chorale::test {

/// Prepares a process whose threads are ranks that share a GPU. Call it before the process touches CUDA.
inline void let_threads_share_gpus() {
  // While others run and wait for a kernel, it cannot be loaded. Nor can a copy pass a kernel in one hardware
  // queue.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
}

}  // namespace chorale::test
