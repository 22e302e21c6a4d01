#include "program.hpp"

#include <algorithm>
#include <utility>

namespace chorale::random {
namespace {

constexpr BufferKind kinds[] = {BufferKind::input, BufferKind::output, BufferKind::scratch};

bool has(const Item& item, Role role) { return info(item.op.code).has(role); }

}  // namespace

Program::Program(uint32_t of_ranks, uint32_t of_blocks)
    : ranks(of_ranks),
      blocks(of_blocks),
      of(ranks, std::vector<Block>(blocks)),
      semaphores(ranks, std::vector<int64_t>(blocks * blocks)) {}

size_t Program::size() const {
  size_t size = 0;
  for (const std::vector<Block>& rank : of) {
    for (const Block& block : rank) size += block.size();
  }
  return size;
}

uint32_t Program::channel(uint32_t rank, uint32_t peer, uint32_t from, uint32_t to) const {
  return (peer - (peer > rank)) * blocks * blocks + from * blocks + to;
}

uint32_t Program::remote(uint32_t rank, uint32_t peer, BufferKind kind) const {
  return (peer - (peer > rank)) * uint32_t(std::size(kinds)) + uint32_t(kind);
}

uint32_t Program::peer_of_channel(uint32_t rank, uint32_t channel) const {
  const uint32_t peer = channel / (blocks * blocks);
  return peer + (peer >= rank);
}

Plan Program::plan() const {
  Plan plan;
  plan.name = "random";
  plan.collective = "test";
  plan.use_double_scratch_buffer = double_scratch;
  plan.extension.bounded_proof = bounded;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    Gpu& gpu = plan.gpus.emplace_back();
    gpu.id = rank;
    std::copy(std::begin(chunks), std::end(chunks), gpu.chunks);
    gpu.semaphores = semaphores[rank];
    std::vector<uint32_t> peers, all, channels, remotes;
    for (uint32_t peer = 0; peer < ranks; ++peer) {
      all.push_back(peer);
      if (peer == rank) continue;
      for (uint32_t pair = 0; pair < blocks * blocks; ++pair) {
        channels.push_back(uint32_t(peers.size()));
        peers.push_back(peer);
      }
      for (const BufferKind kind : kinds) {
        remotes.push_back(uint32_t(gpu.remote_buffers.size()));
        gpu.remote_buffers.push_back({peer, kind, {ChannelType::memory, ChannelType::port}});
      }
    }
    for (const ChannelType type : {ChannelType::memory, ChannelType::port})
      gpu.channels.push_back({.type = type, .connected_to = peers, .rank_groups = {}});
    for (const BufferKind kind : kinds) {
      gpu.channels.push_back(
          {.type = ChannelType::switched, .connected_to = {}, .buffer = kind, .rank_groups = {all}});
    }
    for (uint32_t id = 0; id < blocks; ++id) {
      ThreadBlock& block = gpu.threadblocks.emplace_back();
      block.id = id;
      block.channels = {
          {ChannelType::memory, channels}, {ChannelType::port, channels}, {ChannelType::switched, {0, 1, 2}}};
      block.remote_buffers = {{ChannelType::memory, remotes}, {ChannelType::port, remotes}};
      for (const Item& item : of[rank][id]) {
        // append() sets where the lists are, and their lengths.
        Op& op = append(block, item.op.code, item.sources, item.dests, item.ids);
        const Op lists = op;
        op = item.op;
        op.first_operand = lists.first_operand;
        op.first_id = lists.first_id;
        op.sources = lists.sources;
        op.destinations = lists.destinations;
        op.ids = lists.ids;
      }
    }
  }
  return plan;
}

const Item* loop_around(const Block& block, size_t position) {
  for (size_t at = 0; at < position && at < block.size(); ++at) {
    if (block[at].op.body && position <= at + block[at].op.body) return &block[at];
  }
  return nullptr;
}

void insert(Block& block, size_t position, Item item) {
  if (const Item* const loop = loop_around(block, position)) {
    if (item.op.body) return;
    ++const_cast<Item*>(loop)->op.body;
  }
  block.insert(block.begin() + ptrdiff_t(position), std::move(item));
}

void erase(Block& block, size_t position) {
  Item* const loop = const_cast<Item*>(loop_around(block, position));
  const bool last = loop && --loop->op.body == 0;
  if (last) position = size_t(loop - block.data());
  block.erase(block.begin() + ptrdiff_t(position), block.begin() + ptrdiff_t(position + (last ? 2 : 1)));
}

bool posts(const Item& item) { return has(item, Role::Post) || has(item, Role::PostRelaxed); }
bool awaits(const Item& item) { return has(item, Role::Await) || has(item, Role::AwaitRelaxed); }

}  // namespace chorale::random
