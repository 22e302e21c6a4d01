#include "host_pages.hpp"

#include <cstdlib>

namespace chorale {

std::shared_ptr<std::byte> zeroed_pages(uint64_t bytes) {
  const uint64_t page = page_bytes(), room = (bytes / page + 2) * page;
  // calloc() lets the kernel zero large blocks page by page at the first access.
  void* const memory = room < bytes ? nullptr : std::calloc(1, room);
  if (!memory) return nullptr;
  const std::shared_ptr<void> whole(memory, std::free);
  const uint64_t first = (reinterpret_cast<uint64_t>(memory) + page - 1) / page * page;
  return {whole, reinterpret_cast<std::byte*>(first)};
}

}  // namespace chorale
