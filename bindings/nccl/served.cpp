#include "served.hpp"

#include "calls.hpp"
#include "fallback.hpp"
#include "last_error.hpp"
#include "log.hpp"

namespace chorale::nccl::served {
// The version of the interface is that of the header that CUDA 13.0 brings.
ncclResult_t ncclGetVersion(int* version) {
  if (!version) return fail(Function::ncclGetVersion, ncclInvalidArgument, "version is null");
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (ncclGetLastError() and NCCL_DEBUG=INFO say more)";
    case ncclSystemError:
      return "unhandled system error (ncclGetLastError() and NCCL_DEBUG=INFO say more)";
    case ncclInternalError:
      return "internal error: please report it to Chorale's developers";
    case ncclInvalidArgument:
      return "invalid argument (ncclGetLastError() and NCCL_DEBUG=WARN say which)";
    case ncclInvalidUsage:
      return "invalid usage (ncclGetLastError() and NCCL_DEBUG=WARN say why)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

// NCCL ignores `comm`, and so does this library.
const char* ncclGetLastError(ncclComm_t comm) { return last_error(comm); }

// The fallback has a log of its own.
void ncclResetDebugInit() {
  log::reset();
  if (const auto fallbacks = fallback::find<void()>(Function::ncclResetDebugInit)) fallbacks();
}

}  // namespace chorale::nccl::served
