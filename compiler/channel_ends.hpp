#pragma once
/// \file
/// Which channel a post arrives at: the k-th channel of a type from rank A to rank B and the k-th from B to A
/// are the two ends of one.

#include <vector>

#include "chorale/plan.hpp"

namespace chorale {

inline constexpr ChannelType two_ended_types[] = {ChannelType::memory, ChannelType::port};

/// The memory and port channels of a rank, by position of the type in two_ended_types, and then by channel.
struct ChannelEnds {
  static constexpr uint32_t none = UINT32_MAX;
  std::vector<uint32_t> peers[2];
  std::vector<uint32_t> mates[2];  ///< the peer's channel; none if it has none
};

/// By rank.
std::vector<ChannelEnds> list_channel_ends(const Plan&);

}  // namespace chorale
