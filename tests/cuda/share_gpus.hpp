/// \file
/// What --share-gpus means in the programs of tests/cuda: where there are fewer GPUs than ranks, several
/// ranks have one. It shows that what they do is right, and nothing of how fast it is.
///
/// *As processes* they take turns: whoever waits for another process keeps the GPU until its time is over, a
/// few milliseconds, so that each answer costs a turn and nothing can hang that would not with a GPU each.
/// *As threads of one process* they have their kernels there together, and each is in the way of what CUDA
/// waits for all kernels with: to make and free memory, to load a kernel, to capture, and a queue that is
/// full. Who does that while a kernel waits for a rank that has not launched yet may wait for ever.
#pragma once

#include <cstdlib>

namespace chorale::test {

/// For a process whose threads are ranks that share a GPU; before it touches CUDA.
inline void let_threads_share_gpus() {
  // A kernel that others wait for cannot be loaded beside them, nor can a copy pass a kernel in one hardware
  // queue.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
}

}  // namespace chorale::test
