#pragma once
/// \file
/// What a collective is, by its name.

#include <algorithm>
#include <string_view>

namespace chorale {

/// The collectives whose layout follows from their name: on all ranks inputs and outputs are of one size and
/// are made of parts of one size, see segmentation(). What is done to a piece of every part, all pieces at
/// the same place, is done to the whole. A plan of another name says itself what its result is, or nothing.
inline constexpr std::string_view standard_collectives[] = {"allreduce", "allgather", "reducescatter",
                                                            "alltoall",  "sendrecv",  "broadcast"};

constexpr bool is_standard(std::string_view collective) {
  return std::find(std::begin(standard_collectives), std::end(standard_collectives), collective) !=
         std::end(standard_collectives);
}

/// Whether it combines elements of several ranks.
constexpr bool collective_reduces(std::string_view collective) {
  return collective == "allreduce" || collective == "reducescatter";
}

}  // namespace chorale
