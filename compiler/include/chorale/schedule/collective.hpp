#pragma once
/// \file
/// Host schedules may use these collectives. They are rows of collectives.def.

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "chorale/collective.hpp"

namespace chorale::schedule {

/// Lists the collectives of host schedules, which are some of those of plans.
inline constexpr CollectiveInfo collectives[] = {
    collective_info("allgather"), collective_info("allreduce"), collective_info("reducescatter"),
    collective_info("broadcast"), collective_info("reduce"),    collective_info("alltoall"),
};
static_assert(std::ranges::all_of(collectives, &CollectiveInfo::is_standard), "collectives.def lacks a word");

/// Lists the words of `collectives`, in the same order.
inline constexpr auto collective_names = [] {
  std::array<std::string_view, std::size(collectives)> words;
  std::ranges::transform(collectives, words.begin(), &CollectiveInfo::word);
  return words;
}();

/// Returns the row of one of collective_names. For any other word it returns unknown_collective.
constexpr const CollectiveInfo& collective_row(std::string_view word) {
  for (const CollectiveInfo& row : collectives)
    if (row.word == word) return row;
  return unknown_collective;
}

}  // namespace chorale::schedule
