/// \file
/// A peer's allocations, opened in this process.
#pragma once

#include <cstdint>
#include <span>

#include "address_range.hpp"
#include "exports.hpp"

namespace chorale::cuda {

/// How one allocation of a peer is opened.
struct Foreign {
  uint64_t bytes = 0;
  Sharing sharing = Sharing::ipc;
  HandleBytes handle{};  ///< ipc, fabric
  int descriptor = -1;   ///< descriptor
};

/// One cudaMalloc allocation, or a row of cuMemCreate allocations side by side in one range of addresses.
/// The device that is current when it is made may read and write it.
class Imported {
 public:
  /// \throws RunError
  explicit Imported(std::span<const Foreign> parts);
  Imported(const Imported&) = delete;
  Imported& operator=(const Imported&) = delete;
  ~Imported();

  char* data() const { return opened_ ? static_cast<char*>(opened_) : range_.data(); }

 private:
  int device_ = -1;
  void* opened_ = nullptr;  // by IPC
  AddressRange range_;      // otherwise
};

}  // namespace chorale::cuda
