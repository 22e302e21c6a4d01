/// \file
/// Provides device memory of every kind that a user's buffer may have.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/cuda/device/device.hpp"
#include "executor/cuda/device/driver.hpp"
#include "executor/cuda/device/error.hpp"
#include "executor/cuda/memory/address_range.hpp"

namespace chorale::test {

inline CUmemAllocationProp properties_with(unsigned handle_types) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CUmemAllocationHandleType(handle_types);
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = cuda::current_device();
  return properties;
}

inline CUmemGenericAllocationHandle create_handle(uint64_t bytes, unsigned handle_types) {
  const CUmemAllocationProp properties = properties_with(handle_types);
  CUmemGenericAllocationHandle handle = 0;
  cuda::check(cuda::driver().cuMemCreate(&handle, bytes, &properties, 0), "cuMemCreate");
  return handle;
}

inline constexpr uint64_t unit = 2 << 20;  // bytes, the granularity of cuMemCreate

/// Maps `handles` allocations of `unit` bytes side by side.
inline cuda::AddressRange make_mapped(int handles,
                                      unsigned types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
  cuda::AddressRange range(uint64_t(handles) * unit);
  for (int handle = 0; handle < handles; ++handle) range.map(create_handle(unit, types), unit);
  range.give_access(cuda::current_device());
  return range;
}

/// Holds a buffer that frees itself.
struct Buffer {
  char* data = nullptr;
  std::shared_ptr<void> keep;
};

struct MemoryKind {
  std::string name;
  std::function<Buffer(uint64_t bytes)> make;
  std::string why_not;  ///< a part of the reason why it cannot be shared; empty: it can
  /// Returns whether the device of the calling rank has this kind. Empty: every device has it.
  std::function<bool()> is_there = {};
};

/// Returns whether the device can allocate memory with a fabric handle. A device may support such handles and
/// have no IMEX channel.
inline bool has_fabric_handles() {
  int known = 0;
  cuda::check(cuda::driver().cuDeviceGetAttribute(&known, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
                                                  cuda::current_device()),
              "cuDeviceGetAttribute");
  if (known == 0) return false;
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp properties = properties_with(CU_MEM_HANDLE_TYPE_FABRIC);
  if (cuda::driver().cuMemCreate(&handle, unit, &properties, 0) != CUDA_SUCCESS) return false;
  cuda::check(cuda::driver().cuMemRelease(handle), "cuMemRelease");
  return true;
}

template <class Free>
Buffer owned(void* memory, Free free) {
  return {static_cast<char*>(memory), std::shared_ptr<void>(memory, [free](void* at) { (void)free(at); })};
}

inline Buffer owned(cuda::AddressRange range, uint64_t offset) {
  auto keep = std::make_shared<cuda::AddressRange>(std::move(range));
  return {keep->data() + offset, keep};
}

inline Buffer malloced(uint64_t bytes) {
  void* memory = nullptr;
  cuda::check(cudaMalloc(&memory, bytes), "cudaMalloc");
  return owned(memory, cudaFree);
}

inline Buffer at_offset(uint64_t bytes, uint64_t offset) {
  Buffer buffer = malloced(bytes + offset);
  buffer.data += offset;
  return buffer;
}

/// Returns all kinds; those that can be shared hold up to `unit` bytes.
inline std::vector<MemoryKind> memory_kinds() {
  return {
      {"Malloc", [](uint64_t bytes) { return malloced(bytes); }, ""},
      {"MallocAtOddOffset", [](uint64_t bytes) { return at_offset(bytes, 12 * 7 + 4); }, ""},
      {"MallocFarInside", [](uint64_t bytes) { return at_offset(bytes, (9 << 20) + 52); }, ""},
      {"OneHandle", [](uint64_t) { return owned(make_mapped(1), 0); }, ""},
      {"TwoHandles", [](uint64_t) { return owned(make_mapped(2), unit / 2 + 4); }, ""},
      {"FiveHandlesFromTheThird", [](uint64_t) { return owned(make_mapped(5), 2 * unit + 8); }, ""},
      {"TwoFabricHandles",
       [](uint64_t) { return owned(make_mapped(2, CU_MEM_HANDLE_TYPE_FABRIC), unit / 2 + 4); }, "",
       has_fabric_handles},
      {"FabricHandleBesideADescriptor",
       [](uint64_t) {
         cuda::AddressRange range(2 * unit);
         range.map(create_handle(unit, CU_MEM_HANDLE_TYPE_FABRIC), unit);
         range.map(create_handle(unit, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), unit);
         range.give_access(cuda::current_device());
         return owned(std::move(range), unit - 8);
       },
       "", has_fabric_handles},
      {"HandleThatCannotBeShared", [](uint64_t) { return owned(make_mapped(1, 0), 0); },
       "without a shareable"},
      {"HandleBesideOneThatCannotBeShared",
       [](uint64_t) {
         cuda::AddressRange range(2 * unit);
         range.map(create_handle(unit, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), unit);
         range.map(create_handle(unit, 0), unit);
         range.give_access(cuda::current_device());
         return owned(std::move(range), unit / 2);
       },
       "from byte"},
      {"StreamOrderedPool",
       [](uint64_t bytes) {
         void* memory = nullptr;
         cuda::check(cudaMallocAsync(&memory, bytes, nullptr), "cudaMallocAsync");
         cuda::check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
         return owned(memory, cudaFree);
       },
       "stream-ordered pool"},
      {"Managed",
       [](uint64_t bytes) {
         void* memory = nullptr;
         cuda::check(cudaMallocManaged(&memory, bytes), "cudaMallocManaged");
         return owned(memory, cudaFree);
       },
       "managed"},
      {"PinnedHost",
       [](uint64_t bytes) {
         void* memory = nullptr;
         cuda::check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
         return owned(memory, cudaFreeHost);
       },
       "host memory"},
      {"PageableHost", [](uint64_t bytes) { return owned(std::malloc(bytes), std::free); }, "host memory"},
  };
}

}  // namespace chorale::test
