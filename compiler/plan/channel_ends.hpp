#pragma once
/// \file
/// Finds the channel that a post arrives at. The k-th channel of a type from rank A to rank B and the k-th
/// from B to A are the two ends of one.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale {

/// Lists the channels of a rank that have signals, by position of the type in signalled_types, and then by
/// channel.
struct ChannelEnds {
  static constexpr uint32_t none = UINT32_MAX;
  std::vector<uint32_t> peers[std::size(signalled_types)];
  std::vector<uint32_t> mates[std::size(signalled_types)];  ///< the peer's channel; none if it has none
};

/// Returns the channels of each rank.
std::vector<ChannelEnds> list_channel_ends(const Plan&);

/// Says which of several channels between two ranks are the two ends of one. The author of a wait on a
/// channel that its peer does not signal may have overlooked that. Returns an empty text if there are not
/// several.
std::string how_channels_pair(const ChannelEnds&, size_t type, uint32_t rank, uint32_t channel);

}  // namespace chorale
