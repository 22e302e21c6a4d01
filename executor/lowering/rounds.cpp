#include "rounds.hpp"

#include <algorithm>

namespace chorale::lowering {

RoundShape shape_of_round(const Layout& layout, uint64_t round) {
  const uint64_t skip = round * layout.slice_bytes;
  const auto exist = [&](uint64_t bytes) {
    return bytes > skip ? std::min(bytes - skip, layout.slice_bytes) : uint64_t(0);
  };
  if (layout.chunk_bytes == 0) return {};
  return {exist(layout.chunk_bytes), exist(layout.segment_bytes % layout.chunk_bytes)};
}

std::vector<uint64_t> rounds_of_all_shapes(const Layout& layout) {
  const uint64_t n = layout.rounds();
  // The shape changes in the round in which the last chunk ends, and in the last round.
  const uint64_t end = n == 1 ? 0 : layout.segment_bytes % layout.chunk_bytes / layout.slice_bytes;
  std::vector<uint64_t> rounds;
  for (const uint64_t round : {uint64_t(0), end, end + 1, n - 1}) {
    const bool known = std::any_of(rounds.begin(), rounds.end(), [&](uint64_t other) {
      return shape_of_round(layout, other) == shape_of_round(layout, round);
    });
    if (round < n && !known) rounds.push_back(round);
  }
  return rounds;
}

}  // namespace chorale::lowering
