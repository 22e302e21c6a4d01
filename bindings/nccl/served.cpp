#include "served.hpp"

#include <algorithm>
#include <cstring>

#include "calls.hpp"
#include "fallback.hpp"
#include "groups.hpp"
#include "last_error.hpp"
#include "log.hpp"

namespace chorale::nccl::served {
namespace {

/// Ends a level of a group. Returns whether the group is whole in `whole`.
ncclResult_t end_group(Function function, bool& whole) {
  const group::End ended = group::end();
  whole = ended.whole;
  if (!ended.open)
    return fail(function, ncclInvalidUsage, "this thread has no open group. ncclGroupStart() opens one");
  return ended.result;  // the call that failed has set the last error
}

}  // namespace

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

const char* ncclGetLastError(ncclComm_t comm) { return last_error(comm); }

void ncclResetDebugInit() {
  log::reset();
  if (const auto fallbacks = fallback::find<void()>(Function::ncclResetDebugInit)) fallbacks();
}

ncclResult_t ncclGroupStart() {
  group::start();
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  bool whole = false;
  return end_group(Function::ncclGroupEnd, whole);
}

ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo) {
  bool whole = false;
  const ncclResult_t result = end_group(Function::ncclGroupSimulateEnd, whole);
  if (result != ncclSuccess || !whole || !simInfo) return result;
  // The caller's struct may be that of another version, so it may be shorter or longer than ours.
  ncclSimInfo_t known{};
  size_t size = 0;
  std::memcpy(&size, simInfo, sizeof size);
  std::memcpy(&known, simInfo, std::min(size, sizeof known));
  if (known.magic != simulation_initializer.magic) {
    return fail(Function::ncclGroupSimulateEnd, ncclInvalidArgument,
                "simInfo was not initialised with NCCL_SIM_INFO_INITIALIZER");
  }
  return result;
}

}  // namespace chorale::nccl::served
