/// \file
/// The streams of the CUDA without GPUs: each is a thread that does one thing after the other. The default
/// stream of a device is like the others, and waits for none of them. When a stream copies out of the memory
/// of another GPU of the process, that GPU does the work.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

namespace chorale::test::fake {

void enqueue(cudaStream_t stream, std::function<void()> work);

/// Returns the number of streams that were created and not destroyed.
size_t streams();

}  // namespace chorale::test::fake
