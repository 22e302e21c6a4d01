#include "error.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <string>

#include "chorale/error.hpp"

namespace chorale::cuda {
namespace {

using Reason = RunError::Reason;

// The driver and the runtime use the same numbers for errors that both have.
static_assert(int(CUDA_ERROR_OUT_OF_MEMORY) == int(cudaErrorMemoryAllocation));
static_assert(int(CUDA_ERROR_INVALID_HANDLE) == int(cudaErrorInvalidResourceHandle));

/// Returns "; <what to do>", or "" if no remedy is known.
const char* remedy(cudaError_t result) {
  switch (result) {
    case cudaErrorMemoryAllocation:
      return "; use smaller buffers, or free memory of the GPU (a framework's cache counts as used)";
    case cudaErrorInsufficientDriver:
      return "; there is no NVIDIA driver, or it is older than the CUDA that this was built with: update it";
    case cudaErrorNoDevice:
      return "; no GPU is visible: see nvidia-smi and CUDA_VISIBLE_DEVICES";
    case cudaErrorInvalidDevice:
      return "; see CUDA_VISIBLE_DEVICES: IPC needs the peer's GPU visible in this process too";
    case cudaErrorPeerAccessUnsupported:
    case cudaErrorTooManyPeers:
      return "; these GPUs cannot reach each other: see nvidia-smi topo -p2p rw";
    case cudaErrorMapBufferObjectFailed:
      return "; the ranks must share an IPC namespace (docker run --ipc=host) and see each other's GPUs";
    case cudaErrorAlreadyMapped:
      return "; other code of this process has memory open that its owner has freed: it must close that "
             "(cudaIpcCloseMemHandle)";
    case cudaErrorOperatingSystem:
      return "; allow more open files (ulimit -n) and locked memory (ulimit -l)";
    case cudaErrorSystemNotReady:
      return "; the fabric manager must run (systemctl status nvidia-fabricmanager)";
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
      return "; a graph is being captured: call prepare() before the capture";
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorHardwareStackError:
    case cudaErrorECCUncorrectable:
    case cudaErrorAssert:
      return "; an earlier kernel failed and the process's CUDA context is lost: start the process again";
    default:
      return "";
  }
}

Reason reason_of(cudaError_t result) {
  return result == cudaErrorMemoryAllocation || result == cudaErrorOperatingSystem ? Reason::resources
                                                                                   : Reason::other;
}

std::string message_of(cudaError_t result, std::string_view what) {
  int device = -1;
  const bool known = cudaGetDevice(&device) == cudaSuccess;
  cudaGetLastError();  // clears the error, so that it does not show up at an unrelated call
  return fmt::format("{}: {} ({}{}){}", what, cudaGetErrorString(result), cudaGetErrorName(result),
                     known ? fmt::format(", device {}", device) : "", remedy(result));
}

}  // namespace

void check(cudaError_t result, std::string_view what) {
  if (result == cudaSuccess) return;
  throw RunError(reason_of(result), message_of(result, what));
}

void check(CUresult result, std::string_view what) { check(cudaError_t(result), what); }

void check_quietly(cudaError_t result, std::string_view what) noexcept {
  // At the end of the program, CUDA may be gone before the last destructor runs.
  if (result == cudaSuccess || result == cudaErrorCudartUnloading) return;
  try {
    spdlog::warn(message_of(result, what));
  } catch (...) {  // NOLINT: no one is left to tell
  }
}

void check_quietly(CUresult result, std::string_view what) noexcept {
  check_quietly(cudaError_t(result), what);
}

}  // namespace chorale::cuda
