#include "imported.hpp"

#include <fmt/format.h>

#include "executor/cuda/device/device.hpp"
#include "executor/cuda/device/driver.hpp"
#include "executor/cuda/device/error.hpp"

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

}  // namespace

Imported::Imported(std::span<const Foreign> parts) {
  if (parts.size() == 1 && parts[0].sharing == Sharing::ipc) {
    by_ipc_.emplace(parts[0].owner, parts[0].base, parts[0].bytes, parts[0].handle,
                    parts[0].may_close_others);
    return;
  }
  uint64_t bytes = 0;
  for (const Foreign& part : parts) bytes += part.bytes;
  range_ = AddressRange(bytes);
  for (const Foreign& part : parts) range_.map(import_handle(part), part.bytes);
  range_.give_access(current_device());
}

void Imported::close() noexcept {
  closed_ = true;
  if (by_ipc_) by_ipc_->close();
  range_ = {};
}

}  // namespace chorale::cuda
