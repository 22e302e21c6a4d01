#include "host_pages.hpp"

#include <cstdlib>

namespace chorale {

std::shared_ptr<std::byte> zeroed_pages(uint64_t bytes) {
  const uint64_t page = page_bytes(), room = (bytes / page + 2) * page;
  // calloc leaves the zeroing of large blocks to the kernel, page by page as they are touched.
  void* const memory = room < bytes ? nullptr : std::calloc(1, room);
  if (!memory) return nullptr;
  const std::shared_ptr<void> whole(memory, std::free);
  const uint64_t first = (reinterpret_cast<uint64_t>(memory) + page - 1) / page * page;
  return {whole, reinterpret_cast<std::byte*>(first)};
}

}  // namespace chorale
