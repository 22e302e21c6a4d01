#include "device.hpp"

#ifdef CHORALE_WITH_CUDA
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <chorale/error.hpp>
#endif

namespace chorale::c {

#ifdef CHORALE_WITH_CUDA

void make_current(int device) {
  if (device < 0) return;
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return;  // the executor or exchange that is made next reports the reason on all ranks
  }
  if (device >= count)
    throw UsageError(fmt::format("device {}: this process sees {} GPUs, from 0 on", device, count));
  const cudaError_t wrong = cudaSetDevice(device);
  if (wrong == cudaSuccess) return;
  cudaGetLastError();  // so that the caller's next call does not report this error again
  throw RunError(RunError::Reason::other, fmt::format("GPU {} cannot be used: {} ({})", device,
                                                      cudaGetErrorString(wrong), cudaGetErrorName(wrong)));
}

#else

void make_current(int) {}

#endif

}  // namespace chorale::c
