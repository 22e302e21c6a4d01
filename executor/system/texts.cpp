#include "texts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace chorale::system {

std::string seconds_text(std::chrono::nanoseconds time) {
  return fmt::format("{:.4g} s", std::chrono::duration<double>(time).count());
}

std::string ranks_text(const std::vector<int>& ranks) {
  constexpr size_t shown = 16;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t at = 0; at < std::min(shown, ranks.size()); ++at) {
    text += (at ? ", " : "") + std::to_string(ranks[at]);
  }
  if (ranks.size() > shown) text += fmt::format(" and {} more", ranks.size() - shown);
  return text;
}

}  // namespace chorale::system
