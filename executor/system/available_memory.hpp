/// \file
/// These tell how much memory is left before the kernel kills a process for taking more.
#pragma once

#include <cstdint>
#include <string>

namespace chorale::world {

/// Returns the bytes that the machine has left, or the control groups of this process if they have less.
/// Pages of files that the kernel can drop count as available. Returns UINT64_MAX if nothing says how much
/// there is.
/// \param root  the folder that has /proc and /sys
uint64_t available_memory(const std::string& root = "");

/// Checks that so many bytes are available.
/// \param what  the user of the bytes, as the error names it
/// \throws RunError resources if they are not
void require_memory(uint64_t bytes, const std::string& what);

}  // namespace chorale::world
