#pragma once
/// \file
/// Sizes such as "4K" become numbers of bytes here, and numbers become such text.

#include <cstdint>
#include <string>

namespace chorale {

/// Reads "512", "4K", "4KiB", "1M", "2G" or "1T".
/// \throws UsageError if `text` is not a size; the message says why
uint64_t read_byte_count(const std::string& text);

/// Returns the shortest text that read_byte_count() reads back as `bytes`.
std::string byte_count_text(uint64_t bytes);

}  // namespace chorale
