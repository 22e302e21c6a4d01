/// \file
/// A peer's allocations, opened in this process.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "address_range.hpp"
#include "exports.hpp"
#include "ipc_import.hpp"

namespace chorale::cuda {

/// How one allocation of a peer is opened.
struct Foreign {
  uint64_t bytes = 0;
  Sharing sharing = Sharing::ipc;
  HandleBytes handle{};  ///< ipc, fabric
  int descriptor = -1;   ///< descriptor
  world::Process owner;  ///< ipc
  uint64_t base = 0;     ///< ipc: in the owner's process
};

/// One cudaMalloc allocation, or a row of cuMemCreate allocations side by side in one range of addresses.
/// The device that is current when it is made may read and write it.
class Imported {
 public:
  /// \throws RunError
  explicit Imported(std::span<const Foreign> parts);
  Imported(const Imported&) = delete;
  Imported& operator=(const Imported&) = delete;

  char* data() const { return by_ipc_ ? by_ipc_->data() : range_.data(); }

  /// Its owner has freed it: what is mapped here goes, whoever holds it.
  void close() noexcept;
  /// Whether it was closed, also as an IpcImport is.
  bool stale() const { return closed_ || (by_ipc_ && by_ipc_->stale()); }

 private:
  std::optional<IpcImport> by_ipc_;
  AddressRange range_;  // otherwise
  bool closed_ = false;
};

}  // namespace chorale::cuda
