/// \file
/// These functions tell how much memory a process can take before the kernel kills it.
#pragma once

#include <cstdint>
#include <string>

namespace chorale::system {

/// Returns the bytes of memory that the machine has left, or that the control groups of this process have
/// left if that is less. File pages that the kernel can drop count as available. Returns UINT64_MAX if the
/// system does not report any of this.
/// \param enough  the number of bytes from which on the caller does not need the exact number. The result may
///                then be too low, but not below `enough`, and takes less time to find
/// \param root    the folder that has /proc and /sys
uint64_t available_memory(uint64_t enough = UINT64_MAX, const std::string& root = "");

/// require_memory() accepts fewer bytes unseen, because they are not worth reading files.
constexpr uint64_t least_required = uint64_t(16) << 20;

/// Checks that `bytes` bytes are available.
/// \param what  what needs the bytes, as the error names it
/// \throws RunError resources if fewer are available
void require_memory(uint64_t bytes, const std::string& what);

}  // namespace chorale::system
