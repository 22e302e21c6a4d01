#include "host_pages.hpp"

#include <sys/mman.h>

namespace chorale {

std::shared_ptr<std::byte> zeroed_pages(uint64_t bytes) {
  const uint64_t page = page_bytes(), size = (bytes / page + 1) * page;
  // The kernel zeroes a page at its first access. calloc() would access one here, which may be a huge page.
  void* const memory = size < bytes
                           ? MAP_FAILED
                           : mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  return {static_cast<std::byte*>(memory), [size](std::byte* at) { munmap(at, size); }};
}

}  // namespace chorale
