/// \file
/// This allocates memory of a transport that belongs to this process alone.
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

/// Returns `bytes` zeros that begin at a cache line.
/// \param what  the use of the memory, for the error
/// \throws RunError resources
inline HostMemory host_memory(uint64_t bytes, const char* what) {
  HostMemory memory(new (line, std::nothrow) char[bytes]());
  if (memory) return memory;
  throw RunError(
      RunError::Reason::resources,
      fmt::format("{} bytes of memory for {} cannot be had; give the transport fewer per_peer_bytes", bytes,
                  what));
}

}  // namespace chorale::transport
