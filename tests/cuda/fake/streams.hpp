/// \file
/// Provides the streams of the fake CUDA. Each is a thread that does one thing after the other. The default
/// stream of a device is like the others, and waits for none of them. When a stream copies from the memory of
/// another GPU of the process, that GPU does the work.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace chorale::test::fake {

void enqueue(cudaStream_t stream, std::function<void()> work);

/// Holds the most thread blocks of a kernel since it was last set to 0.
inline std::atomic<uint32_t> most_blocks{0};
inline void note_blocks(uint32_t blocks) {
  uint32_t known = most_blocks;
  while (known < blocks && !most_blocks.compare_exchange_weak(known, blocks)) {
  }
}

/// Returns the number of streams that exist.
size_t streams();

}  // namespace chorale::test::fake
