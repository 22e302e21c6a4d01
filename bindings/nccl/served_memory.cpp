// Serves functions for memory and its registration.

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "handles.hpp"
#include "outcome.hpp"
#include "served.hpp"

namespace chorale::nccl {

/// This is the object behind ncclWindow_t.
struct ncclWindow_vidmem {
  void* at;
  Handle of;
};

namespace served {
namespace {

/// Holds the windows of this process.
struct Process {
  std::mutex mutex;
  std::map<const void*, std::shared_ptr<ncclWindow_vidmem>> windows;
};
Process& process() {
  static Process* const one = new Process;
  return *one;
}

bool on_gpu() { return backend_of(config_of_process()) == Backend::cuda; }

}  // namespace

ncclResult_t ncclMemAlloc(void** ptr, size_t size) {
  *ptr = nullptr;
  if (on_gpu()) {
    *ptr = allocate_for_program(size);
    return ncclSuccess;
  }
  constexpr size_t page = 4096;
  const size_t whole = size > SIZE_MAX - page ? 0 : (size + page) / page * page;
  *ptr = whole == 0 ? nullptr : std::aligned_alloc(page, whole);
  if (!*ptr) throw CallError(ncclSystemError, fmt::format("the host has no {} bytes", size));
  return ncclSuccess;
}

ncclResult_t ncclMemFree(void* ptr) {
  if (!ptr) return ncclSuccess;
  if (on_gpu()) {
    free_of_program(ptr);
  } else {
    std::free(ptr);
  }
  return ncclSuccess;
}

// NCCL maps the buffer to make later calls faster. Chorale accepts the call and does nothing, because peers
// access such buffers as they access others.
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t, void** handle) {
  communicator_for_call(handles::find(comm));
  *handle = buff;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void*) {
  handles::find(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win,
                                    int winFlags) {
  *win = nullptr;
  if (winFlags != NCCL_WIN_DEFAULT && winFlags != NCCL_WIN_COLL_SYMMETRIC)
    throw CallError(ncclInvalidArgument,
                    fmt::format("winFlags is {}, but must be 0 or NCCL_WIN_COLL_SYMMETRIC", winFlags));
  const Handle handle = handles::find(comm);
  communicator_for_call(handle)->add_window(buff, size);
  auto made = std::make_shared<ncclWindow_vidmem>(ncclWindow_vidmem{buff, handle});
  *win = made.get();
  const std::lock_guard<std::mutex> lock(process().mutex);
  process().windows.emplace(made.get(), made);
  return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win) {
  const Handle handle = handles::find(comm);
  if (!win) return ncclSuccess;
  const std::lock_guard<std::mutex> lock(process().mutex);
  const auto found = process().windows.find(win);
  if (found == process().windows.end() || found->second->of != handle)
    throw CallError(ncclInvalidArgument, "win is not a window of this communicator");
  const void* const at = found->second->at;
  process().windows.erase(found);
  const std::lock_guard<std::mutex> lock_handle(handle->mutex);
  if (handle->communicator) handle->communicator->remove_window(at);
  return ncclSuccess;
}

ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void** outUserPtr) {
  const Handle handle = handles::find(comm);
  const std::lock_guard<std::mutex> lock(process().mutex);
  const auto found = process().windows.find(win);
  if (found == process().windows.end() || found->second->of != handle)
    throw CallError(ncclInvalidArgument, "win is not a window of this communicator");
  *outUserPtr = found->second->at;
  return ncclSuccess;
}

}  // namespace served
}  // namespace chorale::nccl
