/// \file
/// Streams of the CUDA without GPUs: each a thread that does one thing after the other. The default stream of
/// a device is one like the others, and waits for none of them. A stream's copy out of the memory of another
/// GPU of the process is that GPU's work.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

namespace chorale::test::fake {

void enqueue(cudaStream_t stream, std::function<void()> work);

/// Those that were created and not destroyed.
size_t streams();

}  // namespace chorale::test::fake
