#pragma once
/// \file
/// Reads and writes numbers of bytes as people write them.

#include <cstdint>
#include <string>

namespace chorale {

/// Reads "512", "4K", "4KiB", "1M", "2G" or "1T".
/// \throws UsageError saying why `text` is no size
uint64_t read_byte_count(const std::string& text);

/// Returns the shortest text that read_byte_count() reads back as `bytes`.
std::string byte_count_text(uint64_t bytes);

}  // namespace chorale
