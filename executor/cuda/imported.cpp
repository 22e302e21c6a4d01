#include "imported.hpp"

#include <fmt/format.h>

#include <cstring>

#include "device.hpp"
#include "driver.hpp"
#include "error.hpp"

namespace chorale::cuda {
namespace {

CUmemGenericAllocationHandle import_handle(const Foreign& part) {
  CUmemGenericAllocationHandle handle = 0;
  if (part.sharing == Sharing::descriptor) {
    void* const descriptor = reinterpret_cast<void*>(uintptr_t(part.descriptor));
    check(driver().cuMemImportFromShareableHandle(&handle, descriptor,
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
          fmt::format("cuMemImportFromShareableHandle of {} bytes by file descriptor", part.bytes));
  } else {
    HandleBytes bytes = part.handle;
    check(driver().cuMemImportFromShareableHandle(&handle, bytes.data(), CU_MEM_HANDLE_TYPE_FABRIC),
          fmt::format("cuMemImportFromShareableHandle of {} bytes by fabric handle", part.bytes));
  }
  return handle;
}

void* open_ipc(const Foreign& part) {
  cudaIpcMemHandle_t handle;
  std::memcpy(&handle, part.handle.data(), sizeof handle);
  void* opened = nullptr;
  check(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess),
        fmt::format("cudaIpcOpenMemHandle of {} bytes", part.bytes));
  return opened;
}

}  // namespace

Imported::Imported(std::span<const Foreign> parts) : device_(current_device()) {
  if (parts.size() == 1 && parts[0].sharing == Sharing::ipc) {
    opened_ = open_ipc(parts[0]);
    return;
  }
  uint64_t bytes = 0;
  for (const Foreign& part : parts) bytes += part.bytes;
  range_ = AddressRange(bytes);
  for (const Foreign& part : parts) range_.map(import_handle(part), part.bytes);
  range_.give_access(device_);
}

Imported::~Imported() {
  if (!opened_) return;
  try {
    const CurrentDevice device(device_);
    check_quietly(cudaIpcCloseMemHandle(opened_), "cudaIpcCloseMemHandle");
  } catch (...) {  // NOLINT: CUDA has gone, and all mappings with it
  }
}

}  // namespace chorale::cuda
