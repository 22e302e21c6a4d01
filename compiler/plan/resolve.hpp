#pragma once
/// \file
/// An operation names things by ids. These functions follow an id from the thread-block-local position to the
/// position in the rank and then to the object. In a broken plan, any step may fail.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "roles.hpp"

namespace chorale {

/// Returns the rank-level id for thread-block-local position `local`; -1 if there is none.
inline int64_t channel_id(const ThreadBlock& block, ChannelType type, uint32_t local) {
  const ChannelRefs* refs = block.channels_of(type);
  return refs && local < refs->ids.size() ? int64_t(refs->ids[local]) : -1;
}

/// Returns the same for Gpu::remote_buffers.
inline int64_t remote_buffer_id(const ThreadBlock& block, ChannelType type, uint32_t local) {
  const RemoteBufferRefs* refs = block.remote_buffers_of(type);
  return refs && local < refs->ids.size() ? int64_t(refs->ids[local]) : -1;
}

/// Returns the remote buffer that an operand names; null if there is none.
inline const RemoteBuffer* remote_buffer(const Gpu& gpu, const ThreadBlock& block, ChannelType via,
                                         uint32_t local) {
  const int64_t id = remote_buffer_id(block, via, local);
  return id >= 0 && size_t(id) < gpu.remote_buffers.size() ? &gpu.remote_buffers[size_t(id)] : nullptr;
}

/// Returns the switch channel that an operand names; .ranks is null if there is none.
inline SwitchGroup switch_group(const Gpu& gpu, const ThreadBlock& block, uint32_t local) {
  const int64_t id = channel_id(block, ChannelType::switched, local);
  return id >= 0 ? gpu.switch_group(uint32_t(id)) : SwitchGroup{BufferKind::input, nullptr};
}

/// Returns the rank at the other end of a thread-block-local channel; -1 if there is none.
inline int64_t peer_of(const Gpu& gpu, const ThreadBlock& block, ChannelType type, uint32_t local) {
  const int64_t id = channel_id(block, type, local);
  return id >= 0 ? gpu.peer(type, uint32_t(id)) : -1;
}

/// Calls visit(const Field&, const Operand&, uint32_t rank, BufferKind) for every memory that the operands of
/// an operation name, in the order of the table. A switch operand names the memory of each member, in rank
/// order.
template <class Visit>
void for_each_place(const Plan& plan, const Gpu& gpu, const ThreadBlock& block, const Op& op, Visit&& visit) {
  for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
    if (is_remote(field.role)) {
      const RemoteBuffer* remote = remote_buffer(gpu, block, op.via, operand.ref);
      if (remote && remote->rank < plan.gpus.size()) visit(field, operand, remote->rank, remote->buffer);
    } else if (is_switched(field.role)) {
      const SwitchGroup group = switch_group(gpu, block, operand.ref);
      if (!group.ranks) return;
      std::vector<uint32_t> ranks = *group.ranks;
      std::sort(ranks.begin(), ranks.end());
      for (const uint32_t rank : ranks) {
        if (rank < plan.gpus.size()) visit(field, operand, rank, group.buffer);
      }
    } else {
      visit(field, operand, gpu.id, BufferKind(operand.ref));
    }
  });
}

/// Calls visit(const Gpu&, const ThreadBlock&, const Op&, const Op* loop, OpPlace) for every operation of a
/// rank. `loop` is the pipeline around the operation, or null.
template <class Visit>
void for_each_op(const Plan& plan, uint32_t rank, Visit&& visit) {
  const Gpu& gpu = plan.gpus[rank];
  for (uint32_t position = 0; position < gpu.threadblocks.size(); ++position) {
    const ThreadBlock& block = gpu.threadblocks[position];
    const Op* loop = nullptr;
    uint64_t end = 0;
    for (uint32_t at = 0; at < block.ops.size(); ++at) {
      if (at == end) loop = nullptr;
      visit(gpu, block, block.ops[at], loop, OpPlace{rank, position, at});
      if (block.ops[at].body && !loop) {
        loop = &block.ops[at];
        end = uint64_t(at) + 1 + loop->body;
      }
    }
  }
}

/// Does the same for all ranks.
template <class Visit>
void for_each_op(const Plan& plan, Visit&& visit) {
  for (uint32_t rank = 0; rank < plan.gpus.size(); ++rank) for_each_op(plan, rank, visit);
}

}  // namespace chorale
