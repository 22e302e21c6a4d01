#pragma once
/// \file
/// Tells what a collective does from its name.

#include <algorithm>
#include <string_view>

namespace chorale {

/// These are the collectives whose layout follows from their name. Inputs have one size on all ranks, and so
/// have outputs. Both are made of parts of one size, see segmentation(). A plan may handle them piece by
/// piece, each time the same place of every part, with the same result. A plan of another name states its own
/// result, or none.
inline constexpr std::string_view standard_collectives[] = {"allreduce", "allgather", "reducescatter",
                                                            "alltoall",  "sendrecv",  "broadcast"};

constexpr bool is_standard(std::string_view collective) {
  return std::find(std::begin(standard_collectives), std::end(standard_collectives), collective) !=
         std::end(standard_collectives);
}

/// Returns whether the collective combines elements of several ranks.
constexpr bool collective_reduces(std::string_view collective) {
  return collective == "allreduce" || collective == "reducescatter";
}

}  // namespace chorale
