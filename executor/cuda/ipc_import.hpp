/// \file
/// An IpcImport is cudaMalloc memory of another process, opened by its IPC handle.
#pragma once

#include <atomic>
#include <cstdint>

#include "../world/control.hpp"
#include "exports.hpp"

namespace chorale::cuda {

/// The memory is opened on the device that is current when the import is made.
///
/// Memory that its owner has freed stays open here until it is closed. Meanwhile CUDA may refuse to open what
/// the owner now has at these addresses (cudaErrorAlreadyMapped; seen with small allocations, which share
/// pages). A buffer that is freed and made again usually gets the same address, and another communicator may
/// still have the former one open. So a new import closes what is in its way: its owner cannot have both.
///
/// Closing waits until the device has nothing to do, as cudaFree() does, and other threads launch nothing
/// meanwhile. Measured: 2.0 s beside a kernel of 2 s, whatever the kernel uses.
class IpcImport {
 public:
  /// \param base, bytes  the allocation in its owner's process
  /// \throws RunError
  IpcImport(const world::Process& owner, uint64_t base, uint64_t bytes, const HandleBytes& handle);
  IpcImport(const IpcImport&) = delete;
  IpcImport& operator=(const IpcImport&) = delete;
  ~IpcImport();

  char* data() const { return static_cast<char*>(opened_.load(std::memory_order_acquire)); }

  /// Returns true if it was closed. An import of any thread may close it.
  bool stale() const { return data() == nullptr; }
  void close() noexcept;

 private:
  bool in_the_way_of(const IpcImport& other) const;
  void close_locked() noexcept;

  const int device_;
  const world::Process owner_;
  const uint64_t base_, bytes_;  // in its owner's process
  std::atomic<void*> opened_{nullptr};
};

}  // namespace chorale::cuda
