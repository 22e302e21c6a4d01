#include "chorale/needs.hpp"

#include <algorithm>
#include <set>

#include "chorale/storage.hpp"
#include "executor/lowering/bind.hpp"
#include "executor/system/available_memory.hpp"

namespace chorale {
namespace {

bool is_packet_op(const OpInfo& op) {
  return op.has(Role::PacketRead) || op.has(Role::PacketWrite) || op.has(Role::RemotePacketWrite) ||
         op.has(Role::SwitchPacketWrite);
}

/// Counts the channels of all types with a property.
uint32_t channels_of(const Gpu& gpu, bool (*has)(ChannelType)) {
  uint32_t count = 0;
  for (const ChannelType type : all_channel_types) count += has(type) ? gpu.channel_count(type) : 0;
  return count;
}

std::vector<uint32_t> peers_of(const Gpu& gpu) {
  std::set<uint32_t> peers;
  for (const ChannelRecord& record : gpu.channels) {
    peers.insert(record.connected_to.begin(), record.connected_to.end());
    for (const std::vector<uint32_t>& group : record.rank_groups) peers.insert(group.begin(), group.end());
  }
  for (const RemoteBuffer& remote : gpu.remote_buffers) peers.insert(remote.rank);
  peers.erase(gpu.id);
  return {peers.begin(), peers.end()};
}

}  // namespace

RankNeeds needs_of(const Plan& plan, uint32_t rank, uint64_t bytes, DType dtype, uint64_t round_scratch) {
  const std::vector<ScratchUse> use = scratch_use(plan);
  const Layout layout = in_rounds(plan, use, layout_of(plan, bytes, dtype), round_scratch);
  const lowering::ScratchBytes scratch = lowering::scratch_bytes(use[rank], layout);
  const Gpu& gpu = plan.gpus[rank];
  RankNeeds needs;
  needs.input_bytes = layout.sizes.input;
  needs.output_bytes = layout.sizes.output;
  needs.scratch_bytes = scratch.plain() + scratch.packets();
  needs.thread_blocks = uint32_t(gpu.threadblocks.size());
  needs.memory_channels = channels_of(gpu, is_direct);
  needs.port_channels = channels_of(gpu, has_proxy);
  needs.switch_channels = channels_of(gpu, is_switched);
  needs.peers = peers_of(gpu);
  needs.input_reached = reached_by_peers(plan, rank, BufferKind::input);
  needs.output_reached = reached_by_peers(plan, rank, BufferKind::output);
  for (const ThreadBlock& block : gpu.threadblocks) {
    needs.packets = needs.packets || std::any_of(block.ops.begin(), block.ops.end(),
                                                 [](const Op& op) { return is_packet_op(info(op.code)); });
  }
  return needs;
}

uint64_t available_host_memory() { return system::available_memory(); }

}  // namespace chorale
