#pragma once
/// \file
/// Names and numbers in a host schedule follow these rules, in the language and in plan files alike.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace chorale::schedule {

/// Returns whether a name may stand in dumps and expressions: it consists of letters, digits and underscores,
/// and does not begin with a digit.
inline bool is_word(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto fits = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
  };
  return !name.empty() && !is_digit(name[0]) && std::all_of(name.begin(), name.end(), fits);
}
inline constexpr std::string_view a_word = "a name of letters, digits and underscores";

/// Expressions use these names for the rank, the number of ranks, and the number of pool streams, which plan
/// files call `lanes`.
inline constexpr std::array<std::string_view, 3> own_symbols = {"rank", "ranks", "lanes"};
inline bool is_own_symbol(std::string_view name) {
  return std::find(own_symbols.begin(), own_symbols.end(), name) != own_symbols.end();
}

/// Plan files use these names for the main stream, and for the pool streams.
inline constexpr std::array<std::string_view, 2> own_streams = {"main", "pool"};
inline bool is_own_stream(std::string_view name) {
  return std::find(own_streams.begin(), own_streams.end(), name) != own_streams.end();
}

inline constexpr unsigned most_ranks = 1024;          ///< a schedule has at most this many ranks
inline constexpr uint32_t most_tag = UINT32_MAX - 1;  ///< the largest tag of a transfer

/// Limit the depth of an expression, the number of its operators, and the depth of loops and conditions. A
/// plan that was written must be readable again. But plan files are at most 64 levels deep, and expressions
/// in them share no parts.
inline constexpr unsigned most_nested = 36, most_operators = 4096, most_bodies = 8;

}  // namespace chorale::schedule
