/// \file
/// An Allocation is device memory that peers can map.
#pragma once

#include <cstdint>
#include <utility>

#include "address_range.hpp"

namespace chorale::cuda {

/// Allocates by cuMemCreate() with a file descriptor if the device supports that: then a peer keeps the
/// memory alive until it unmaps it. Otherwise allocates by cudaMalloc(), and no peer may use the memory after
/// it is freed.
class Allocation {
 public:
  Allocation() = default;
  /// Allocates on the current device. The memory is not zeroed.
  /// \throws RunError resources
  explicit Allocation(uint64_t bytes);
  Allocation(Allocation&& other) noexcept { *this = std::move(other); }
  Allocation& operator=(Allocation&& other) noexcept {
    std::swap(range_, other.range_);
    std::swap(malloced_, other.malloced_);
    return *this;
  }
  ~Allocation();

  char* data() const { return malloced_ ? static_cast<char*>(malloced_) : range_.data(); }

 private:
  AddressRange range_;
  void* malloced_ = nullptr;
};

}  // namespace chorale::cuda
