/// \file
/// Launches of kernels that say themselves whether they failed.
#pragma once

#include <cuda_runtime.h>

#include <utility>

namespace chorale::cuda {

namespace detail {
template <class... Parameters, class... Arguments>
cudaError_t enqueue(bool early, void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
                    cudaStream_t stream, Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.stream = stream;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = early ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}
}  // namespace detail

/// Enqueues a kernel of one-dimensional blocks. Not by <<<>>>, which leaves its error among those of all
/// other calls: one that the application has dealt with would be taken for it.
template <class... Parameters, class... Arguments>
cudaError_t enqueue(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, cudaStream_t stream,
                    Arguments&&... arguments) {
  return detail::enqueue(false, kernel, blocks, threads, stream, std::forward<Arguments>(arguments)...);
}

/// The same of a kernel that waits for what precedes it in the stream itself, by detail::wait_for_turn(): it
/// may begin while that still runs.
template <class... Parameters, class... Arguments>
cudaError_t enqueue_early(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
                          cudaStream_t stream, Arguments&&... arguments) {
  return detail::enqueue(true, kernel, blocks, threads, stream, std::forward<Arguments>(arguments)...);
}

}  // namespace chorale::cuda
