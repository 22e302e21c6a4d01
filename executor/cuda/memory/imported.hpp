/// \file
/// An Imported is a peer's allocation, or a row of them, opened in this process.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "address_range.hpp"
#include "exports.hpp"
#include "ipc_import.hpp"

namespace chorale::cuda {

/// Holds the data that is needed to open one allocation of a peer. The comment of a member names the sharings
/// that use it.
struct Foreign {
  uint64_t bytes = 0;
  Sharing sharing = Sharing::ipc;
  HandleBytes handle{};          ///< ipc, fabric
  int descriptor = -1;           ///< descriptor
  world::Process owner;          ///< ipc
  uint64_t base = 0;             ///< ipc: the address in the owner's process
  bool may_close_others = true;  ///< ipc: see IpcImport
};

/// Maps one cudaMalloc allocation, or a row of adjacent cuMemCreate allocations in one range of addresses.
/// The device that is current at construction may read and write it.
class Imported {
 public:
  /// \throws RunError
  explicit Imported(std::span<const Foreign> parts);
  Imported(const Imported&) = delete;
  Imported& operator=(const Imported&) = delete;

  char* data() const { return by_ipc_ ? by_ipc_->data() : range_.data(); }

  /// Unmaps the memory here because its owner has freed it, even if this object is still in use.
  void close() noexcept;
  /// Returns true if it was closed, by close() or as any IpcImport may be.
  bool stale() const { return closed_ || (by_ipc_ && by_ipc_->stale()); }

 private:
  std::optional<IpcImport> by_ipc_;
  AddressRange range_;  // otherwise
  bool closed_ = false;
};

}  // namespace chorale::cuda
