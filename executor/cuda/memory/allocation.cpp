#include "allocation.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "executor/cuda/device/device.hpp"
#include "executor/cuda/device/driver.hpp"
#include "executor/cuda/device/error.hpp"

namespace chorale::cuda {
namespace {

bool offers(CUdevice_attribute what, int device) {
  int value = 0;
  check(driver().cuDeviceGetAttribute(&value, what, device), "cuDeviceGetAttribute");
  return value != 0;
}

/// Creates the memory; returns false if the device does not support it.
bool create(uint64_t bytes, int device, AddressRange& range) {
  if (!offers(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) ||
      !offers(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device)) {
    return false;
  }
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  // We do not request a fabric handle. Peers are on this host, where a descriptor reaches them, and CUDA
  // refuses a fabric handle without an IMEX channel. Application memory with only a fabric handle is
  // accepted; see Sharing::fabric.
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  // This lets a network adapter reach the memory too.
  properties.allocFlags.gpuDirectRDMACapable =
      offers(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device);
  size_t unit = 0;
  check(driver().cuMemGetAllocationGranularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
        "cuMemGetAllocationGranularity");
  const uint64_t whole = (bytes + unit - 1) / unit * unit;
  CUmemGenericAllocationHandle handle = 0;
  const CUresult result = driver().cuMemCreate(&handle, whole, &properties, 0);
  if (result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NOT_PERMITTED ||
      result == CUDA_ERROR_INVALID_DEVICE) {
    spdlog::debug("device {}: cuMemCreate fails ({}), cudaMalloc is used", device,
                  cudaGetErrorName(cudaError_t(result)));
    return false;
  }
  check(result, fmt::format("cuMemCreate of {} bytes", whole));
  try {
    range = AddressRange(whole);
  } catch (...) {
    check_quietly(driver().cuMemRelease(handle), "cuMemRelease");
    throw;
  }
  range.map(handle, whole);
  range.give_access(device);
  return true;
}

}  // namespace

Allocation::Allocation(uint64_t bytes) {
  if (bytes == 0) return;
  if (!create(bytes, current_device(), range_)) {
    check(cudaMalloc(&malloced_, bytes), fmt::format("cudaMalloc of {} bytes", bytes));
  }
}

Allocation::~Allocation() {
  if (malloced_) check_quietly(cudaFree(malloced_), "cudaFree");
}

}  // namespace chorale::cuda
