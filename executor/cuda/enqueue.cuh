/// \file
/// Launches of kernels that say themselves whether they failed.
#pragma once

#include <cuda_runtime.h>

#include <utility>

namespace chorale::cuda {

/// Enqueues a kernel of one-dimensional blocks. Not by <<<>>>, which leaves its error among those of all
/// other calls: one that the application has dealt with would be taken for it.
template <class... Parameters, class... Arguments>
cudaError_t enqueue(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, cudaStream_t stream,
                    Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

}  // namespace chorale::cuda
