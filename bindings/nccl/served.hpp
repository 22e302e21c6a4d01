#pragma once

#include "abi.hpp"

/// The functions that this library serves. They have the names and the meanings that NCCL gives them.
namespace chorale::nccl::served {

/// Returns the version of the interface, which is that of the header that CUDA 13.0 brings.
ncclResult_t ncclGetVersion(int* version);

const char* ncclGetErrorString(ncclResult_t result);

/// NCCL ignores `comm`, and so does this library.
const char* ncclGetLastError(ncclComm_t comm);

/// Also resets the log of the fallback.
void ncclResetDebugInit();

ncclResult_t ncclGroupStart();

/// Fails with the last error of a call of the group, to which ncclGetLastError() has the sentence.
ncclResult_t ncclGroupEnd();

/// Ends a group without running it. No call can be in it, so there is no time to estimate, and `simInfo`
/// stays as it is.
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo);

}  // namespace chorale::nccl::served
