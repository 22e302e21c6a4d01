// Serves collectives, messages and groups.

#include <algorithm>
#include <cstring>
#include <utility>

#include "groups.hpp"
#include "outcome.hpp"
#include "served.hpp"

namespace chorale::nccl::served {
namespace {

/// Runs a call, or keeps it for the end of the open group.
ncclResult_t call(ncclComm_t comm, const Task& task) {
  const Outcome outcome = group::add(handles::find(comm), task);
  if (!outcome.good()) throw CallError(outcome.result, outcome.sentence);
  return outcome.result;
}

/// Ends a level of a group.
group::End end_group() {
  group::End ended = group::end();
  if (!ended.open)
    throw CallError(ncclInvalidUsage, "this thread has no open group. ncclGroupStart() opens one");
  return ended;
}

}  // namespace

ncclResult_t ncclAllReduce(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return call(comm, {Function::ncclAllReduce, send, recv, count, type, op, 0, stream});
}

ncclResult_t ncclReduce(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, {Function::ncclReduce, send, recv, count, type, op, root, stream});
}

ncclResult_t ncclReduceScatter(const void* send, void* recv, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, {Function::ncclReduceScatter, send, recv, count, type, op, 0, stream});
}

ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return call(comm, {Function::ncclBcast, buffer, buffer, count, type, ncclSum, root, stream});
}

ncclResult_t ncclBroadcast(const void* send, void* recv, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return call(comm, {Function::ncclBroadcast, send, recv, count, type, ncclSum, root, stream});
}

ncclResult_t ncclAllGather(const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return call(comm, {Function::ncclAllGather, send, recv, count, type, ncclSum, 0, stream});
}

ncclResult_t ncclAlltoAll(const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream) {
  return call(comm, {Function::ncclAlltoAll, send, recv, count, type, ncclSum, 0, stream});
}

ncclResult_t ncclGather(const void* send, void* recv, size_t count, ncclDataType_t type, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return call(comm, {Function::ncclGather, send, recv, count, type, ncclSum, root, stream});
}

ncclResult_t ncclScatter(const void* send, void* recv, size_t count, ncclDataType_t type, int root,
                         ncclComm_t comm, cudaStream_t stream) {
  return call(comm, {Function::ncclScatter, send, recv, count, type, ncclSum, root, stream});
}

ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return call(comm, {Function::ncclSend, send, nullptr, count, type, ncclSum, peer, stream});
}

ncclResult_t ncclRecv(void* recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return call(comm, {Function::ncclRecv, nullptr, recv, count, type, ncclSum, peer, stream});
}

ncclResult_t ncclGroupStart() {
  group::start();
  return ncclSuccess;
}

// If a call of the group has failed, the group runs nothing, and ncclGetLastError() has the sentence of that
// call.
ncclResult_t ncclGroupEnd() {
  group::End ended = end_group();
  if (!ended.whole || ended.result != ncclSuccess) return ended.result;
  const Outcome outcome = group::run(std::move(ended.calls));
  if (!outcome.good()) throw CallError(outcome.result, outcome.sentence);
  return outcome.result;
}

// NCCL estimates the time of the group's calls, and runs none of them. Chorale has no model of the machine
// that is right for calls of every size. So the time becomes NCCL's value for an unknown time.
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo) {
  const group::End ended = end_group();
  if (!ended.whole || ended.result != ncclSuccess) return ended.result;
  for (const Init& init : ended.calls.inits) {
    if (init.handle) outcome_of([&] { handles::take(init.handle.get()); });
    if (init.result) *init.result = nullptr;
  }
  if (simInfo) {
    // The caller's struct may be that of another version, so it may be shorter or longer than ours.
    ncclSimInfo_t known{};
    size_t size = 0;
    std::memcpy(&size, simInfo, sizeof size);
    size = std::min(size, sizeof known);
    std::memcpy(&known, simInfo, size);
    if (known.magic != simulation_initializer.magic)
      throw CallError(ncclInvalidArgument, "simInfo was not initialised with NCCL_SIM_INFO_INITIALIZER");
    known.estimatedTime = simulation_initializer.estimatedTime;
    std::memcpy(simInfo, &known, size);
  }
  if (ended.calls.inits.empty()) return ncclSuccess;
  throw CallError(
      ncclInvalidUsage,
      "a group that makes communicators cannot be simulated. The group was ended and nothing of it "
      "ran. ncclGroupEnd() makes them");
}

}  // namespace chorale::nccl::served
