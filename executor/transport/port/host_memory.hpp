/// \file
/// host_memory() allocates memory of a transport that only this process uses.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <new>

#include "chorale/error.hpp"

namespace chorale::transport {

inline constexpr std::align_val_t line{128};

struct FreeLines {
  void operator()(char* memory) const { ::operator delete[](memory, line); }
};
using HostMemory = std::unique_ptr<char[], FreeLines>;

/// Returns `bytes` bytes of zeroed memory, aligned to a cache line.
/// \param what  what the memory is for, as the error names it
/// \throws RunError resources
inline HostMemory host_memory(uint64_t bytes, const char* what) {
  HostMemory memory(new (line, std::nothrow) char[bytes]());
  if (memory) return memory;
  throw RunError(
      RunError::Reason::resources,
      fmt::format("cannot allocate {} bytes of memory for {}; give the transport fewer per_peer_bytes", bytes,
                  what));
}

}  // namespace chorale::transport
