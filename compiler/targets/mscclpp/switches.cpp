// This file checks the order in which ranks create their switch channels. The members of a channel create it
// together, each when it reaches the channel in its own list, and the first member sends the others what it
// has created. If ranks reach their shared channels in different orders, they mistake one for another, or
// wait for each other.

#include <utility>

#include "checks.hpp"

namespace chorale::mscclpp {
namespace {

/// Holds what the members of a switch channel must agree on: the buffer, the first member, and all members,
/// sorted.
struct Shared {
  BufferKind buffer;
  uint32_t maker = 0;
  std::vector<uint32_t> ranks;
  bool operator==(const Shared&) const = default;
};

struct Channel {
  uint32_t id;
  Shared shared;
};

std::vector<Channel> switch_channels(const Gpu& gpu) {
  std::vector<Channel> channels;
  for (uint32_t id = 0; id < gpu.channel_count(ChannelType::switched); ++id) {
    const SwitchGroup group = gpu.switch_group(id);
    if (!group.ranks || group.ranks->empty()) continue;
    Channel channel{id, {group.buffer, group.ranks->front(), *group.ranks}};
    std::sort(channel.shared.ranks.begin(), channel.shared.ranks.end());
    channels.push_back(std::move(channel));
  }
  return channels;
}

bool has_member(const Channel& channel, uint32_t rank) {
  return std::binary_search(channel.shared.ranks.begin(), channel.shared.ranks.end(), rank);
}

/// Returns the next position, from `at` on, of a channel with the member `rank`.
size_t next_shared(const std::vector<Channel>& channels, size_t at, uint32_t rank) {
  while (at < channels.size() && !has_member(channels[at], rank)) ++at;
  return at;
}

/// Describes a channel in words, such as "output of ranks 0, 1, made by rank 0".
std::string words(const Shared& shared) {
  std::string text = std::string(buffer_names[size_t(shared.buffer)]) + " of ranks ";
  for (size_t k = 0; k < shared.ranks.size(); ++k) text += (k ? ", " : "") + number(shared.ranks[k]);
  return text + ", made by rank " + number(shared.maker);
}

}  // namespace

void switch_order(const Plan& plan, Finder& find) {
  std::vector<std::vector<Channel>> all;
  for (const Gpu& gpu : plan.gpus) all.push_back(switch_channels(gpu));
  for (uint32_t left = 0; left < all.size(); ++left) {
    if (all[left].empty()) continue;
    for (uint32_t right = left + 1; right < all.size(); ++right) {
      size_t here = 0, there = 0;
      for (;; ++here, ++there) {
        here = next_shared(all[left], here, right);
        there = next_shared(all[right], there, left);
        // If only one of the two has another channel, nothing says in which order it should be.
        if (here == all[left].size() || there == all[right].size()) break;
        const Channel &one = all[left][here], &other = all[right][there];
        if (one.shared == other.shared) continue;
        find.add_at(path_of("gpus", right, "channels"),
                    "switch channel " + number(one.id) + " of " + rank_name(left) + " is " +
                        words(one.shared) + ", and switch channel " + number(other.id) + " of " +
                        rank_name(right) + " is " + words(other.shared) +
                        ", but MSCCL++ makes each together with its members, in the order of their lists",
                    "list the switch channels that ranks share in one order");
        break;
      }
    }
  }
}

}  // namespace chorale::mscclpp
