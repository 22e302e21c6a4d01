#pragma once
/// \file
/// zeroed_pages() allocates memory in pages that hold nothing else. Memory that CUDA registers needs this,
/// because CUDA registers whole pages and refuses copies from or to memory that is only partly registered.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace chorale {

/// Returns the page size of this machine in bytes.
inline uint64_t page_bytes() {
  static const uint64_t bytes = uint64_t(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// Returns at least `bytes` bytes of zeroed memory, aligned to a page; null if there is too little memory.
std::shared_ptr<std::byte> zeroed_pages(uint64_t bytes);

}  // namespace chorale
