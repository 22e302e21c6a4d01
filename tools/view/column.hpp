/// \file
/// A page holds the numbers of many operations as columns, which browsers read faster than lists in JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace chorale::tools {

/// Holds one whole number after the other, in as few bytes as each needs (LEB128).
class Column {
 public:
  void add(uint64_t number);
  /// Adds a number that may be negative. The page reads the column with the same rule.
  void add_signed(int64_t number) { add(uint64_t(number) << 1 ^ uint64_t(number >> 63)); }
  /// Returns the bytes as base64.
  std::string text() const;

 private:
  std::string bytes_;
};

/// Returns bytes as base64 with padding.
std::string base64(std::string_view bytes);

}  // namespace chorale::tools
