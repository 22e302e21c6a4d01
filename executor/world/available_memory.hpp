/// \file
/// How much memory can still be had before the kernel kills a process for it.
#pragma once

#include <cstdint>
#include <string>

namespace chorale::world {

/// Bytes that the machine has, or the control groups of this process if they are given less. Pages of files
/// that the kernel can drop count as available. UINT64_MAX where nothing says how much there is.
/// \param root  the folder that has /proc and /sys
uint64_t available_memory(const std::string& root = "");

/// \param what  is to take the bytes, as the error says it
/// \throws RunError resources if so many are not available
void require_memory(uint64_t bytes, const std::string& what);

}  // namespace chorale::world
