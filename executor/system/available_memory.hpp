/// \file
/// These functions tell how much memory a process can take before the kernel kills it.
#pragma once

#include <cstdint>
#include <string>

namespace chorale::system {

/// Returns the bytes of memory that the machine has left, or that the control groups of this process have
/// left if that is less. File pages that the kernel can drop count as available. Returns UINT64_MAX if the
/// system does not report any of this.
/// \param root  the folder that has /proc and /sys
uint64_t available_memory(const std::string& root = "");

/// Checks that `bytes` bytes are available.
/// \param what  what needs the bytes, as the error names it
/// \throws RunError resources if fewer are available
void require_memory(uint64_t bytes, const std::string& what);

}  // namespace chorale::system
