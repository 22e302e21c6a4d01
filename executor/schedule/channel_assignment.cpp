#include "channel_assignment.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "chorale/device/context.hpp"

namespace chorale::schedule_run {

using schedule::Concrete;
using schedule::ConcreteTransfer;
using schedule::Step;
using schedule::StepKind;

namespace {

/// Describes one end of a transfer: its rank, stream and step.
struct End {
  uint32_t rank = 0, stream = 0;
  size_t step = 0;
  const ConcreteTransfer* transfer = nullptr;
};

/// Holds transfers that follow each other over the same channels.
struct Chain {
  size_t sent = 0, received = 0;  ///< the steps of the last transfer
  uint32_t blocks = 0;
  std::vector<size_t> pairs;
};

}  // namespace

uint32_t blocks_for(uint64_t bytes, uint32_t most, uint64_t each) {
  return uint32_t(std::clamp<uint64_t>(bytes / each, 1, most));
}

ChannelAssignment assign_channels(const Concrete& all, uint32_t most_blocks) {
  ChannelAssignment channels;
  channels.of_pair.resize(all.pairs.size());
  std::vector<End> receivers(all.pairs.size());
  std::vector<End> senders;
  for (uint32_t rank = 0; rank < all.ranks; ++rank) {
    for (size_t at = 0; at < all.steps[rank].size(); ++at) {
      const Step& step = all.steps[rank][at];
      if (step.kind != StepKind::sm_copy) continue;
      for (const ConcreteTransfer& one : step.transfers) {
        const End end{rank, step.stream, at, &one};
        if (one.is_send) {
          senders.push_back(end);
        } else {
          receivers[one.pair] = end;
        }
      }
    }
  }

  // The keys are mover, sender and receiver, then the streams of both.
  std::map<std::tuple<schedule::Mover, uint32_t, uint32_t>,
           std::map<std::pair<uint32_t, uint32_t>, std::vector<Chain>>>
      chains;
  std::map<schedule::Mover, uint64_t> shares;
  for (const End& sender : senders) {
    const size_t pair = sender.transfer->pair;
    const End& receiver = receivers[pair];
    AssignedChannel& assigned = channels.of_pair[pair];
    assigned.to = receiver.transfer->box;
    assigned.blocks =
        blocks_for(assigned.to.bytes, most_blocks,
                   sender.transfer->mover == schedule::Mover::port ? bytes_of_an_order : bytes_of_a_block);
    Leg message;
    message.bytes = assigned.to.bytes;
    uint64_t& share = shares[sender.transfer->mover];
    share = std::max(share, share_of(message, 0, assigned.blocks).bytes);

    auto& there =
        chains[{sender.transfer->mover, sender.rank, receiver.rank}][{sender.stream, receiver.stream}];
    auto chain = std::find_if(there.begin(), there.end(), [&](const Chain& one) {
      return one.sent < sender.step && one.received < receiver.step;
    });
    if (chain == there.end()) chain = there.emplace(there.end());
    chain->sent = sender.step;
    chain->received = receiver.step;
    chain->blocks = std::max(chain->blocks, assigned.blocks);
    chain->pairs.push_back(pair);
  }

  for (const auto& [mover, share] : shares) channels.links.push_back({mover, 0, share});
  for (const auto& [between, by_streams] : chains) {
    uint32_t channel = 0;
    for (const auto& [streams, all_chains] : by_streams) {
      for (const Chain& chain : all_chains) {
        for (const size_t pair : chain.pairs) channels.of_pair[pair].channel = channel;
        channel += chain.blocks;
      }
    }
    for (Links& links : channels.links)
      if (links.mover == std::get<0>(between)) links.channels = std::max(links.channels, channel);
  }
  return channels;
}

std::vector<uint64_t> ChannelAssignment::blocks_by_stream(const Concrete& all, uint32_t rank) const {
  std::vector<uint64_t> most(all.streams.size());
  for (const Step& step : all.steps[rank]) {
    if (step.kind != StepKind::sm_copy) continue;
    uint64_t blocks = 0;
    for (const ConcreteTransfer& one : step.transfers) blocks += of_pair[one.pair].blocks;
    most[step.stream] = std::max(most[step.stream], blocks);
  }
  return most;
}

}  // namespace chorale::schedule_run
