/// \file
/// A message about a misspelt word suggests the word that was meant.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chorale {

/// Returns ", did you mean 'x'?" with the known word nearest to `word`. Of equally near words it takes the
/// first. Returns "" if none is near.
///
/// A word is near if inserting, dropping, changing or swapping at most a third of the letters of `word` (at
/// least one letter) makes it. Case does not count.
inline std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  const auto same = [](char left, char right) {
    return std::tolower(static_cast<unsigned char>(left)) == std::tolower(static_cast<unsigned char>(right));
  };
  const auto distance = [&](std::string_view other) {
    // Three rows of the table of distances between prefixes suffice, because a swap of neighbours looks two
    // rows back.
    std::vector<size_t> before(other.size() + 1), last(other.size() + 1), row(other.size() + 1);
    std::iota(last.begin(), last.end(), size_t{0});
    for (size_t at = 1; at <= word.size(); ++at) {
      row[0] = at;
      for (size_t to = 1; to <= other.size(); ++to) {
        row[to] =
            std::min({last[to] + 1, row[to - 1] + 1, last[to - 1] + !same(word[at - 1], other[to - 1])});
        if (at > 1 && to > 1 && same(word[at - 1], other[to - 2]) && same(word[at - 2], other[to - 1])) {
          row[to] = std::min(row[to], before[to - 2] + 1);
        }
      }
      before.swap(last);
      last.swap(row);
    }
    return last[other.size()];
  };
  size_t best = std::max<size_t>(1, word.size() / 3) + 1;
  std::string_view nearest;
  for (const std::string_view candidate : known) {
    const size_t found = distance(candidate);
    // A word is not near when none of its letters are left.
    if (found < best && found < std::max(word.size(), candidate.size())) {
      best = found;
      nearest = candidate;
    }
  }
  return nearest.empty() ? std::string() : ", did you mean '" + std::string(nearest) + "'?";
}

}  // namespace chorale
