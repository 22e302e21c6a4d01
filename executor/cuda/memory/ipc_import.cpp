#include "ipc_import.hpp"

#include <fmt/format.h>

#include <cstring>
#include <mutex>
#include <vector>

#include "executor/cuda/device/device.hpp"
#include "executor/cuda/device/error.hpp"

namespace chorale::cuda {
namespace {

/// Records all imports that this process has open, for all communicators.
struct All {
  std::mutex mutex;
  std::vector<IpcImport*> open;
};

All& all() {
  static All& instance = *new All;  // never destroyed, because the last import to end still needs it
  return instance;
}

/// Returns the current device. It does not make a context, because that may wait for the GPU.
int device_of_thread() {
  int device = -1;
  check(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

}  // namespace

IpcImport::IpcImport(const world::Process& owner, uint64_t base, uint64_t bytes, const HandleBytes& handle,
                     bool may_close_others)
    : device_(device_of_thread()), owner_(owner), base_(base), bytes_(bytes) {
  cudaIpcMemHandle_t of;
  static_assert(sizeof of == sizeof handle);
  std::memcpy(&of, handle.data(), sizeof of);
  const std::lock_guard lock(all().mutex);
  all().open.reserve(all().open.size() + 1);
  void* opened = nullptr;
  const auto open = [&] { return cudaIpcOpenMemHandle(&opened, of, cudaIpcMemLazyEnablePeerAccess); };
  cudaError_t result = open();
  if (result == cudaErrorAlreadyMapped && may_close_others) {
    cudaGetLastError();
    for (IpcImport* const other : all().open) {
      if (other->in_the_way_of(*this)) other->close_locked();
    }
    result = open();
  }
  check(result, fmt::format("cudaIpcOpenMemHandle of {} bytes", bytes));
  opened_.store(opened, std::memory_order_release);
  all().open.push_back(this);
}

IpcImport::~IpcImport() {
  const std::lock_guard lock(all().mutex);
  std::erase(all().open, this);
  close_locked();
}

void IpcImport::close() noexcept {
  const std::lock_guard lock(all().mutex);
  close_locked();
}

bool IpcImport::in_the_way_of(const IpcImport& other) const {
  return device_ == other.device_ && owner_ == other.owner_ && base_ < other.base_ + other.bytes_ &&
         other.base_ < base_ + bytes_;
}

void IpcImport::close_locked() noexcept {
  void* const opened = opened_.exchange(nullptr, std::memory_order_acq_rel);
  if (!opened) return;
  try {
    const CurrentDevice device(device_);
    check_quietly(cudaIpcCloseMemHandle(opened), "cudaIpcCloseMemHandle");
  } catch (...) {  // NOLINT: CUDA is gone, and all mappings with it
  }
}

}  // namespace chorale::cuda
