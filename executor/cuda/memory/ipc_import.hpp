/// \file
/// An IpcImport is cudaMalloc memory of another process, opened by its IPC handle.
#pragma once

#include <atomic>
#include <cstdint>

#include "executor/world/control.hpp"
#include "exports.hpp"

namespace chorale::cuda {

/// Opens the memory on the device that is current at construction.
///
/// Memory that its owner has freed stays open here until it is closed. Meanwhile CUDA may refuse to open new
/// memory of the owner at the same addresses (cudaErrorAlreadyMapped; seen with small allocations, which
/// share pages). A buffer that is freed and allocated again usually gets the same address, and another
/// communicator may still have the old one open. So a new import closes the imports at its addresses: their
/// memory must be gone.
///
/// Closing waits until the device is idle, as cudaFree() does, and other threads launch nothing meanwhile.
/// Measured: 2.0 s beside a kernel of 2 s, whatever the kernel uses.
class IpcImport {
 public:
  /// \param base, bytes the allocation in its owner's process
  /// \param may_close_others  closes the imports at its addresses, if they are in the way
  /// \throws RunError
  IpcImport(const world::Process& owner, uint64_t base, uint64_t bytes, const HandleBytes& handle,
            bool may_close_others = true);
  IpcImport(const IpcImport&) = delete;
  IpcImport& operator=(const IpcImport&) = delete;
  ~IpcImport();

  char* data() const { return static_cast<char*>(opened_.load(std::memory_order_acquire)); }

  /// Returns true if it was closed. An import in any thread may close it.
  bool stale() const { return data() == nullptr; }
  void close() noexcept;

 private:
  bool in_the_way_of(const IpcImport& other) const;
  void close_locked() noexcept;

  const int device_;
  const world::Process owner_;
  const uint64_t base_, bytes_;  // in the owner's process
  std::atomic<void*> opened_{nullptr};
};

}  // namespace chorale::cuda
