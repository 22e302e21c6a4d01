/// \file
/// Provides the streams of the fake CUDA. Each is a thread that does one thing after the other. The default
/// stream of a device is like the others, and waits for none of them. When a stream copies from the memory of
/// another GPU of the process, that GPU does the work.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

namespace chorale::test::fake {

void enqueue(cudaStream_t stream, std::function<void()> work);

/// Returns the number of streams that exist.
size_t streams();

}  // namespace chorale::test::fake
