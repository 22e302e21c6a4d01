#include "exports.hpp"

#include <fmt/format.h>

#include <cstring>

#include "executor/cuda/device/driver.hpp"
#include "executor/cuda/device/error.hpp"

namespace chorale::cuda {
namespace {

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(HandleBytes));
static_assert(sizeof(CUmemFabricHandle) == sizeof(HandleBytes));

/// Retains an allocation. Until it is released, CUDA gives its number to no other allocation.
void retain(const Segment& segment) {
  if (segment.handle == 0) return;
  CUmemGenericAllocationHandle handle = 0;
  check(driver().cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(segment.base)),
        "cuMemRetainAllocationHandle");
}

void release(const Segment& segment) {
  if (segment.handle != 0) check_quietly(driver().cuMemRelease(segment.handle), "cuMemRelease");
}

bool is_there(const Segment& segment) {
  Segment now;
  int device = -1;
  return find_segment(segment.base, now, device).empty() && now == segment;
}

}  // namespace

Exports::~Exports() {
  for (const Export& one : exports_) release(one.segment);
}

uint64_t Exports::number_of(const Segment& segment) {
  for (const Export& one : exports_) {
    if (one.segment == segment) return one.number;
  }
  exports_.reserve(exports_.size() + 1);
  retain(segment);
  exports_.push_back({next_, segment});
  return next_++;
}

std::vector<uint64_t> Exports::forget_freed() {
  std::vector<uint64_t> freed;
  std::erase_if(exports_, [&](const Export& one) {
    if (is_there(one.segment)) return false;
    freed.push_back(one.number);
    release(one.segment);
    return true;
  });
  return freed;
}

HandleBytes handle_of(const Segment& segment) {
  HandleBytes bytes{};
  if (segment.sharing == Sharing::ipc) {
    cudaIpcMemHandle_t handle;
    check(cudaIpcGetMemHandle(&handle, reinterpret_cast<void*>(segment.base)),
          fmt::format("cudaIpcGetMemHandle of {} bytes", segment.bytes));
    std::memcpy(bytes.data(), &handle, sizeof handle);
  } else if (segment.sharing == Sharing::fabric) {
    check(driver().cuMemExportToShareableHandle(bytes.data(), segment.handle, CU_MEM_HANDLE_TYPE_FABRIC, 0),
          fmt::format("cuMemExportToShareableHandle of {} bytes as a fabric handle (needs an IMEX channel)",
                      segment.bytes));
  }
  return bytes;
}

system::Descriptor descriptor_of(const Segment& segment) {
  int descriptor = -1;
  check(driver().cuMemExportToShareableHandle(&descriptor, segment.handle,
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        fmt::format("cuMemExportToShareableHandle of {} bytes as a file descriptor", segment.bytes));
  return system::Descriptor(descriptor);
}

}  // namespace chorale::cuda
