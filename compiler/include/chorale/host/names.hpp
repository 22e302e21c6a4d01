#pragma once
/// \file
/// Says which names and numbers a host schedule may have. The language and plan files have the same rules.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace chorale::host {

/// Returns whether a name can be a word of dumps and of expressions: letters, digits and underscores.
inline bool is_word(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto fits = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
  };
  return !name.empty() && !is_digit(name[0]) && std::all_of(name.begin(), name.end(), fits);
}
inline constexpr std::string_view a_word = "a name of letters, digits and underscores";

/// Expressions use these names for the rank, the number of ranks, and the number of pool lanes.
inline constexpr std::array<std::string_view, 3> own_symbols = {"rank", "ranks", "lanes"};
inline bool is_own_symbol(std::string_view name) {
  return std::find(own_symbols.begin(), own_symbols.end(), name) != own_symbols.end();
}

/// Plan files use these names for the caller's lane, and for those of the pool.
inline constexpr std::array<std::string_view, 2> own_lanes = {"main", "pool"};
inline bool is_own_lane(std::string_view name) {
  return std::find(own_lanes.begin(), own_lanes.end(), name) != own_lanes.end();
}

inline constexpr unsigned most_ranks = 1024;
inline constexpr uint32_t most_tag = UINT32_MAX - 1;

/// These are the most operators of an expression within each other, and in all, and the most loops and
/// conditions within each other. A plan that is written has to be read again: plan files are 64 levels deep
/// at most, and share no parts.
inline constexpr unsigned most_nested = 36, most_operators = 4096, most_bodies = 8;

}  // namespace chorale::host
