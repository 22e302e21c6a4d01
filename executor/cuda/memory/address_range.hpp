/// \file
/// An AddressRange is a range of device addresses, and owns the memory of cuMemCreate() that is mapped in it.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace chorale::cuda {

class AddressRange {
 public:
  AddressRange() = default;
  /// Reserves a range.
  /// \param bytes a multiple of the allocation granularity
  /// \param alignment the alignment of the start; 0: that granularity
  /// \throws RunError
  explicit AddressRange(uint64_t bytes, uint64_t alignment = 0);
  AddressRange(AddressRange&& other) noexcept { *this = std::move(other); }
  AddressRange& operator=(AddressRange&& other) noexcept;
  ~AddressRange();

  /// Maps `bytes` of `handle` after the mapped part, and takes ownership of the handle, even when it fails.
  void map(CUmemGenericAllocationHandle handle, uint64_t bytes);

  /// Maps `bytes` of `handle` after the mapped part. The caller keeps the handle.
  void map_kept(CUmemGenericAllocationHandle handle, uint64_t bytes);

  /// Lets `device` read and write the whole mapped part.
  void give_access(int device) const;

  char* data() const { return reinterpret_cast<char*>(base_); }

 private:
  CUdeviceptr base_ = 0;
  uint64_t bytes_ = 0;
  uint64_t used_ = 0;
  std::vector<uint64_t> mapped_;  // bytes of each mapping
};

/// Lets `device` read and write `[base, base + bytes)`, which must be whole mappings of this process.
void give_access(uint64_t base, uint64_t bytes, int device);

}  // namespace chorale::cuda
