#pragma once
/// \file
/// Converts between text such as "4K" and numbers of bytes. K, M, G and T are powers of 1024.

#include <cstdint>
#include <string>

namespace chorale {

/// Reads a size such as "512", "512B", "4K", "4KiB", "1M", "2G" or "1T". Letters may be in lower case.
/// \returns the size in bytes
/// \throws UsageError if `text` is not a size, or is larger than 2^64 - 1
uint64_t read_byte_count(const std::string& text);

/// Returns the shortest text that read_byte_count() reads back as `bytes`.
std::string byte_count_text(uint64_t bytes);

}  // namespace chorale
