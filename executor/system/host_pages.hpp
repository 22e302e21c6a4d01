#pragma once
/// \file
/// This allocates memory in pages that hold nothing else. Memory that CUDA registers has to be like that,
/// because CUDA registers whole pages and refuses to copy from or to memory that it has registered in part.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace chorale {

/// Returns the bytes of a page of this machine's memory.
inline uint64_t page_bytes() {
  static const uint64_t bytes = uint64_t(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// Returns at least `bytes` bytes of zeroed memory that begin at a page; null if there is too little memory.
std::shared_ptr<std::byte> zeroed_pages(uint64_t bytes);

}  // namespace chorale
