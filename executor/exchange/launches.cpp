// launches_of() orders messages, and assigns blocks to them.

#include <algorithm>
#include <map>
#include <utility>

#include "carrier.hpp"

namespace chorale::exchange {
namespace {

/// Holds the messages of each direction and peer, in their order.
using Lines = std::map<std::pair<bool, int>, std::vector<Message>>;

Lines lines_of(std::span<const SendTo> sends, std::span<const RecvFrom> recvs) {
  Lines lines;
  // A kernel only reads the data that it sends, so the const_cast is safe.
  for (const SendTo& send : sends)
    lines[{false, send.peer}].push_back(
        {const_cast<void*>(send.data), send.bytes, uint16_t(send.peer), 0, 0, 0});
  for (const RecvFrom& recv : recvs)
    lines[{true, recv.peer}].push_back({recv.data, recv.bytes, uint16_t(recv.peer), 1, 0, 0});
  return lines;
}

}  // namespace

std::vector<Launch> launches_of(std::span<const SendTo> sends, std::span<const RecvFrom> recvs,
                                const Links& links, size_t most_messages) {
  const Lines lines = lines_of(sends, recvs);
  size_t longest = 0;
  for (const auto& [line, messages] : lines) longest = std::max(longest, messages.size());
  // A launch ends only when all its messages have ended. So no message may wait for a message that the peer
  // has put into a later launch. Therefore message k of a peer and direction is in launch k / each on every
  // rank with several launches. A rank with a single launch moves all its messages at once.
  const size_t each = sends.size() + recvs.size() <= most_messages
                          ? std::max<size_t>(longest, 1)
                          : std::max<size_t>(most_messages / (2 * size_t(links.table.ranks)), 1);
  std::vector<Launch> launches;
  for (size_t begin = 0; begin < longest; begin += each) {
    Launch& launch = launches.emplace_back();
    for (const auto& [line, messages] : lines) {
      if (begin >= messages.size()) continue;
      const auto first = messages.begin() + ptrdiff_t(begin);
      const auto last = messages.begin() + ptrdiff_t(std::min(begin + each, messages.size()));
      uint32_t blocks = 0;
      for (auto at = first; at != last; ++at)
        blocks = std::max(blocks, channels_of(at->bytes, links.share_bytes, links.table.channels));
      for (auto at = first; at != last; ++at) {
        launch.messages.push_back(*at);
        launch.messages.back().block = uint16_t(launch.blocks);
        launch.messages.back().blocks = uint16_t(blocks);
      }
      launch.blocks += blocks;
    }
  }
  return launches;
}

}  // namespace chorale::exchange
