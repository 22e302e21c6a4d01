#include "address_range.hpp"

#include <fmt/format.h>

#include <mutex>

#include "executor/cuda/device/driver.hpp"
#include "executor/cuda/device/error.hpp"

namespace chorale::cuda {

AddressRange::AddressRange(uint64_t bytes, uint64_t alignment) {
  check(driver().cuMemAddressReserve(&base_, bytes, alignment, 0, 0),
        fmt::format("cuMemAddressReserve of {} bytes", bytes));
  bytes_ = bytes;
}

AddressRange& AddressRange::operator=(AddressRange&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(used_, other.used_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

AddressRange::~AddressRange() {
  if (bytes_ == 0) return;
  CUdeviceptr at = base_;
  for (const uint64_t bytes : mapped_) {
    check_quietly(driver().cuMemUnmap(at, bytes), "cuMemUnmap");
    at += bytes;
  }
  check_quietly(driver().cuMemAddressFree(base_, bytes_), "cuMemAddressFree");
}

void AddressRange::map(CUmemGenericAllocationHandle handle, uint64_t bytes) {
  mapped_.reserve(mapped_.size() + 1);
  const CUresult result = driver().cuMemMap(base_ + used_, bytes, 0, handle, 0);
  // The mapping keeps the memory alive.
  check_quietly(driver().cuMemRelease(handle), "cuMemRelease");
  check(result, fmt::format("cuMemMap of {} bytes", bytes));
  mapped_.push_back(bytes);
  used_ += bytes;
}

void AddressRange::map_kept(CUmemGenericAllocationHandle handle, uint64_t bytes) {
  mapped_.reserve(mapped_.size() + 1);
  check(driver().cuMemMap(base_ + used_, bytes, 0, handle, 0), fmt::format("cuMemMap of {} bytes", bytes));
  mapped_.push_back(bytes);
  used_ += bytes;
}

void AddressRange::give_access(int device) const { cuda::give_access(base_, used_, device); }

void give_access(uint64_t base, uint64_t bytes, int device) {
  // Ranks that are threads of this process and share a device request the same access. CUDA would refuse the
  // second call.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  unsigned long long given = 0;
  check(driver().cuMemGetAccess(&given, &access.location, base),
        fmt::format("cuMemGetAccess for device {}", device));
  if (given == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  check(driver().cuMemSetAccess(base, bytes, &access, 1),
        fmt::format("cuMemSetAccess of {} bytes for device {}", bytes, device));
}

}  // namespace chorale::cuda
