#include "channel_ends.hpp"

#include <algorithm>

#include "report.hpp"

namespace chorale {
namespace {

/// Sorts channels by peer and then by id. It counts instead of comparing, because a plan may have one channel
/// per thread block and peer.
class ByPeer {
 public:
  std::vector<uint32_t> sort(const std::vector<uint32_t>& peers) {
    for (const uint32_t peer : peers) {
      if (peer >= ends_.size()) ends_.resize(size_t(peer) + 1, 0);
      if (ends_[peer]++ == 0) present_.push_back(peer);
    }
    std::sort(present_.begin(), present_.end());
    uint32_t end = 0;
    for (const uint32_t peer : present_) ends_[peer] = end += ends_[peer];
    std::vector<uint32_t> ids(peers.size());
    for (size_t id = peers.size(); id-- > 0;) ids[--ends_[peers[id]]] = uint32_t(id);
    for (const uint32_t peer : present_) ends_[peer] = 0;
    present_.clear();
    return ids;
  }

 private:
  std::vector<uint32_t> ends_;  // by peer: how many channels, then where they end; zeros between calls
  std::vector<uint32_t> present_;
};

}  // namespace

std::vector<ChannelEnds> list_channel_ends(const Plan& plan) {
  std::vector<ChannelEnds> ranks(plan.gpus.size());
  ByPeer by_peer;
  for (size_t type = 0; type < std::size(signalled_types); ++type) {
    std::vector<std::vector<uint32_t>> sorted(ranks.size());
    for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
      std::vector<uint32_t>& peers = ranks[rank].peers[type];
      for (const ChannelRecord& record : plan.gpus[rank].channels) {
        if (record.type == signalled_types[type])
          peers.insert(peers.end(), record.connected_to.begin(), record.connected_to.end());
      }
      ranks[rank].mates[type].assign(peers.size(), ChannelEnds::none);
      sorted[rank] = by_peer.sort(peers);
    }
    for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
      const std::vector<uint32_t>& peers = ranks[rank].peers[type];
      for (size_t first = 0; first < sorted[rank].size();) {
        const uint32_t peer = peers[sorted[rank][first]];
        const std::vector<uint32_t>* back = peer < ranks.size() ? &sorted[peer] : nullptr;
        const auto there = [&, peer](uint32_t id, uint32_t wanted) {
          return ranks[peer].peers[type][id] < wanted;
        };
        size_t mate =
            back ? size_t(std::lower_bound(back->begin(), back->end(), rank, there) - back->begin()) : 0;
        for (; first < sorted[rank].size() && peers[sorted[rank][first]] == peer; ++first, ++mate) {
          if (!back || mate >= back->size() || ranks[peer].peers[type][(*back)[mate]] != rank) continue;
          ranks[rank].mates[type][sorted[rank][first]] = (*back)[mate];
        }
      }
    }
  }
  return ranks;
}

std::string how_channels_pair(const ChannelEnds& ends, size_t type, uint32_t rank, uint32_t channel) {
  const std::vector<uint32_t>& peers = ends.peers[type];
  const uint32_t peer = peers[channel];
  const auto several = std::count(peers.begin(), peers.end(), peer);
  if (several < 2) return {};
  const std::string type_name(channel_type_names[size_t(signalled_types[type])]);
  return rank_name(rank) + " has " + count(uint64_t(several), type_name + " channel") + " to " +
         rank_name(peer) + ", which are paired with those from " + rank_name(peer) + " to " +
         rank_name(rank) + " in order: the first with the first, the second with the second";
}

}  // namespace chorale
