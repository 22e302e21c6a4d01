#include "current_device.hpp"

#ifdef CHORALE_WITH_CUDA
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <chorale/error.hpp>
#endif

namespace chorale::c {

#ifdef CHORALE_WITH_CUDA

CurrentDevice::CurrentDevice(int device) {
  if (device < 0) return;
  int count = 0;
  cudaError_t wrong = cudaGetDeviceCount(&count);
  if (wrong == cudaSuccess && device >= count)
    throw UsageError(fmt::format("device {}: this process sees {} GPUs, from 0 on", device, count));
  if (wrong == cudaSuccess) wrong = cudaGetDevice(&before_);
  if (wrong == cudaSuccess) wrong = cudaSetDevice(device);
  if (wrong == cudaSuccess) return;
  cudaGetLastError();  // it is told here, and not by the caller's next call
  throw RunError(RunError::Reason::other, fmt::format("GPU {} cannot be taken: {} ({})", device,
                                                      cudaGetErrorString(wrong), cudaGetErrorName(wrong)));
}

CurrentDevice::~CurrentDevice() {
  if (before_ >= 0) cudaSetDevice(before_);
}

#else

CurrentDevice::CurrentDevice(int) {}
CurrentDevice::~CurrentDevice() = default;

#endif

}  // namespace chorale::c
