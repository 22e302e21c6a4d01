#include "writer.hpp"

#include <algorithm>

namespace chorale::msccl {
namespace {

/// Returns the position of an id in the list of a thread block, and appends the id if it is new. Such lists
/// are short.
template <class Refs>
uint32_t local(std::vector<Refs>& lists, uint32_t id) {
  if (lists.empty()) lists.emplace_back().type = ChannelType::memory;
  std::vector<uint32_t>& ids = lists.front().ids;
  const auto found = std::find(ids.begin(), ids.end(), id);
  const uint32_t position = uint32_t(found - ids.begin());
  if (found == ids.end()) ids.push_back(id);
  return position;
}

/// Says where the threads of a thread block must synchronise: before they publish what they have done, and
/// after they wait for others. A relaxed signal publishes nothing.
SyncType synchronisation(const OpInfo& row) {
  if (row.has(Role::Post) || row.has(Role::Release)) return SyncType::before;
  return row.has(Role::PostRelaxed) ? SyncType::none : SyncType::after;
}

Operand here(const Region& region) { return {region.index, region.size, uint32_t(region.buffer)}; }

}  // namespace

RankWriter::RankWriter(Gpu& gpu, size_t blocks) : gpu_(gpu) {
  gpu_.threadblocks.resize(blocks);
  for (uint32_t id = 0; id < blocks; ++id) gpu_.threadblocks[id].id = id;
}

uint32_t RankWriter::add_channel(uint32_t peer) {
  if (gpu_.channels.empty()) gpu_.channels.emplace_back();
  std::vector<uint32_t>& peers = gpu_.channels.front().connected_to;
  peers.push_back(peer);
  return uint32_t(peers.size() - 1);
}

uint32_t RankWriter::add_semaphore() {
  gpu_.semaphores.push_back(0);
  return uint32_t(gpu_.semaphores.size() - 1);
}

Op& RankWriter::append(uint32_t block, Opcode code, std::span<const Operand> from,
                       std::span<const Operand> to, uint32_t at) {
  Op& op = chorale::append(gpu_.threadblocks[block], code, from, to);
  op.at = at;
  return op;
}

void RankWriter::control(uint32_t id, Opcode code, std::span<const uint32_t> ids, uint32_t at) {
  ThreadBlock& block = gpu_.threadblocks[id];
  const bool channels = !info(code).has(Role::Acquire) && !info(code).has(Role::Release);
  std::vector<uint32_t> used(ids.begin(), ids.end());
  if (channels) {
    for (uint32_t& channel : used) channel = local(block.channels, channel);
  }
  Op& op = chorale::append(block, code, {}, {}, used);
  op.at = at;
  op.sync = synchronisation(info(code));
  if (channels) op.via = ChannelType::memory;
}

void RankWriter::copy(uint32_t block, Region from, Region to, uint32_t at) {
  const Operand source = here(from), destination = here(to);
  append(block, Opcode::copy, {&source, 1}, {&destination, 1}, at);
}

void RankWriter::reduce(uint32_t block, Region from, Region other, Region to, uint32_t at) {
  const Operand sources[] = {here(from), here(other)}, destination = here(to);
  append(block, Opcode::reduce, sources, {&destination, 1}, at);
}

void RankWriter::put(uint32_t block, Region from, uint32_t peer, Region to, uint32_t at) {
  const Operand source = here(from);
  const Operand destination{to.index, to.size, remote_buffer(gpu_.threadblocks[block], peer, to.buffer)};
  append(block, Opcode::put, {&source, 1}, {&destination, 1}, at).via = ChannelType::memory;
}

uint32_t RankWriter::remote_buffer(ThreadBlock& block, uint32_t peer, BufferKind buffer) {
  const auto [entry, added] =
      remote_buffers_.try_emplace({peer, buffer}, uint32_t(gpu_.remote_buffers.size()));
  if (added) gpu_.remote_buffers.push_back({peer, buffer, {ChannelType::memory}});
  return local(block.remote_buffers, entry->second);
}

}  // namespace chorale::msccl
