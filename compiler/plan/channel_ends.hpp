#pragma once
/// \file
/// A post on a channel arrives at another channel of the peer, which is found here. The k-th channel of a
/// type from rank A to rank B and the k-th one from B to A are paired.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale {

/// Lists the channels of a rank that have signals: first by the type's position in signalled_types, then by
/// id.
struct ChannelEnds {
  static constexpr uint32_t none = UINT32_MAX;
  std::vector<uint32_t> peers[std::size(signalled_types)];
  std::vector<uint32_t>
      mates[std::size(signalled_types)];  ///< the paired channel of the peer; none if there is none
};

/// Returns the channels of each rank.
std::vector<ChannelEnds> list_channel_ends(const Plan&);

/// Returns a text that says which channels are paired when there are several between two ranks. It helps the
/// author of a wait on a channel that the peer never signals. Returns an empty text if there is only one.
std::string how_channels_pair(const ChannelEnds&, size_t type, uint32_t rank, uint32_t channel);

}  // namespace chorale
