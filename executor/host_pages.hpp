#pragma once
/// \file
/// Memory in pages that hold nothing else. What CUDA registers has to be: it registers whole pages, and
/// refuses to copy from or to memory of which it has registered a part.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace chorale {

/// Bytes of a page of this machine's memory.
inline uint64_t page_bytes() {
  static const uint64_t bytes = uint64_t(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// Zeroed memory of at least `bytes` bytes, from the beginning of a page on; null if it cannot be had.
std::shared_ptr<std::byte> zeroed_pages(uint64_t bytes);

}  // namespace chorale
