#include "imported.hpp"

#include <fmt/format.h>

#include <algorithm>

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

std::shared_ptr<Imported> ImportCache::find(const Key& key) {
  const auto found = held_.find(key);
  if (found == held_.end() || found->second.imported->stale()) return nullptr;
  found->second.last_use = ++uses_;
  return found->second.imported;
}

std::shared_ptr<Imported> ImportCache::open(const Key& key, std::span<const Foreign> parts) {
  auto imported = std::make_shared<Imported>(parts);
  ++opened_;
  held_[key] = {imported, ++uses_};
  return imported;
}

void ImportCache::drop(int rank, const std::vector<uint64_t>& freed) {
  if (freed.empty()) return;
  std::erase_if(held_, [&](const auto& held) {
    const auto& [owner, numbers] = held.first;
    const bool gone = owner == rank && std::find_first_of(numbers.begin(), numbers.end(), freed.begin(),
                                                          freed.end()) != numbers.end();
    if (gone) held.second.imported->close();
    return gone;
  });
}

void ImportCache::limit_unused(size_t limit) {
  std::vector<std::pair<uint64_t, Key>> unused;
  for (const auto& [key, entry] : held_) {
    if (entry.imported.use_count() == 1) unused.emplace_back(entry.last_use, key);
  }
  if (unused.size() <= limit) return;
  std::sort(unused.begin(), unused.end());
  for (size_t at = 0; at < unused.size() - limit; ++at) held_.erase(unused[at].second);
}

}  // namespace chorale::cuda
