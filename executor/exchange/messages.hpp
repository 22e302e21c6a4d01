/// \file
/// The kernel of exchanges moves the messages of a launch, block by block. C++17, for CUDA and the CPU.
#pragma once

#include <cstdint>

#include "chorale/device/messages.hpp"

namespace chorale::exchange {

/// Describes one message of a launch. Messages of one peer and direction are in their order. They share
/// blocks that other messages do not use, one for each channel that the longest of them uses.
struct Message {
  void* data;
  uint64_t bytes;
  uint16_t peer;
  uint16_t receives;  ///< 1: from the peer; 0: to the peer
  uint16_t block;     ///< the message's first block
  uint16_t blocks;
};

/// Tells why a block stopped, unless the world had stopped before. There is one report per direction, peer
/// and channel.
struct Report {
  uint32_t stop = 0;  ///< a Stop, written last
  uint32_t pad = 0;
  uint64_t bytes = 0;  ///< the bytes of the message
  uint64_t sent = 0;   ///< for a receive, the sender's size; equal to `bytes` if the size is not the reason
};

/// Holds the values that are the same in all launches.
struct Links {
  EndpointTable table;
  uint64_t share_bytes = 1;   ///< a message uses one channel per `share_bytes` bytes
  Report* reports = nullptr;  ///< the reports of sends, then of receives, each by peer and then by channel
};

/// Returns the number of channels that a message uses. Both ends get the same number if they agree on its
/// length.
CHORALE_HD uint32_t channels_of(uint64_t bytes, uint64_t share_bytes, uint32_t channels) {
  const uint64_t wanted = bytes / share_bytes + (bytes % share_bytes != 0 ? 1 : 0);
  return wanted == 0 ? 1 : wanted < channels ? uint32_t(wanted) : channels;
}

CHORALE_HD uint64_t report_at(const EndpointTable& table, bool receives, int32_t peer, uint32_t channel) {
  return (uint64_t(receives ? table.ranks : 0) + uint64_t(peer)) * table.channels + channel;
}

/// Moves one group's share of a message.
CHORALE_FN Stop run_message(const Group& group, const Links& links, const Message& message,
                            const Deadline& deadline) {
  const Endpoint& e = links.table.at(message.peer, group.id);
  uint64_t sent = message.bytes;
  const Stop stop = message.receives ? recv_message(group, e, message.data, message.bytes, deadline, sent)
                                     : send_message(group, e, message.data, message.bytes, deadline);
  // The world reports its stop elsewhere. This report is only for a timeout or for sizes that differ.
  if (stop == Stop::none || !group.leader() || (stop != Stop::timed_out && sent == message.bytes))
    return stop;
  Report& report = links.reports[report_at(links.table, message.receives != 0, message.peer, group.id)];
  report.bytes = message.bytes;
  report.sent = sent;
  store_release(&report.stop, uint32_t(stop));
  return stop;
}

/// Moves the shares of block `block.id` in `n` messages.
CHORALE_FN Stop run_messages(const Group& block, const Links& links, const Message* messages, uint32_t n,
                             const Deadline& deadline) {
  for (uint32_t at = 0; at < n; ++at) {
    const Message& message = messages[at];
    if (block.id < message.block || block.id >= uint32_t(message.block) + message.blocks) continue;
    Group group = block;
    group.id = block.id - message.block;
    group.count = channels_of(message.bytes, links.share_bytes, links.table.channels);
    if (group.id >= group.count) continue;  // this message is too short to use this block
    const Stop stop = run_message(group, links, message, deadline);
    if (stop != Stop::none) return stop;
  }
  return Stop::none;
}

}  // namespace chorale::exchange
