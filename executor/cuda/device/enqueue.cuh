/// \file
/// These functions launch kernels and return the launch error.
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

/// Enqueues a kernel of one-dimensional blocks. It does not use <<<>>>, which mixes its error with those of
/// all other calls: an old error that the application has handled would look like the kernel's.
template <class... Parameters, class... Arguments>
cudaError_t enqueue(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, cudaStream_t stream,
                    Arguments&&... arguments) {
  return detail::enqueue(false, kernel, blocks, threads, stream, std::forward<Arguments>(arguments)...);
}

/// Enqueues a kernel that calls chorale::detail::wait_for_turn() to wait for earlier work in the stream. It
/// may begin while that work still runs.
template <class... Parameters, class... Arguments>
cudaError_t enqueue_early(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
                          cudaStream_t stream, Arguments&&... arguments) {
  return detail::enqueue(true, kernel, blocks, threads, stream, std::forward<Arguments>(arguments)...);
}

}  // namespace chorale::cuda
