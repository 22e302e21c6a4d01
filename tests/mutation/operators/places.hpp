#pragma once
/// \file
/// Provides queries about a plan that several operators need.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/plan/resolve.hpp"
#include "compiler/plan/roles.hpp"
#include "tests/mutation/sites.hpp"

namespace chorale::mutation {

inline bool moves_data(const Op& op) { return op.sources + op.destinations != 0; }

inline const ThreadBlock& block_of(const Plan& plan, const OpPlace& at) {
  return plan.gpus[at.rank].threadblocks[at.threadblock];
}

inline std::vector<Operand> source_list(const ThreadBlock& block, const Op& op) {
  return {block.sources(op).begin(), block.sources(op).end()};
}
inline std::vector<Operand> dest_list(const ThreadBlock& block, const Op& op) {
  return {block.dests(op).begin(), block.dests(op).end()};
}

/// Changes one operand of an operation; `position` counts sources, then destinations.
template <class Change>
void change_operand(Edit& edit, const OpPlace& at, size_t position, Change&& how) {
  const ThreadBlock& block = block_of(edit.plan(), at);
  const Op& op = block.ops[at.op];
  std::vector<Operand> sources = source_list(block, op), dests = dest_list(block, op);
  how(position < sources.size() ? sources[position] : dests[position - sources.size()]);
  edit.set_operands(at, std::move(sources), std::move(dests));
}

/// Describes the place of an operand: the ranks, and the buffer there.
struct Where {
  std::vector<uint32_t> ranks;
  BufferKind buffer = BufferKind::input;
};
inline Where where_is(const Gpu& gpu, const ThreadBlock& block, const Op& op, const Field& field,
                      const Operand& operand) {
  if (is_switched(field.role)) {
    const SwitchGroup group = switch_group(gpu, block, operand.ref);
    return {*group.ranks, group.buffer};
  }
  if (!is_remote(field.role)) return {{gpu.id}, BufferKind(operand.ref)};
  const RemoteBuffer* remote = remote_buffer(gpu, block, op.via, operand.ref);
  return {{remote->rank}, remote->buffer};
}

/// Returns the number of chunks that a buffer has on each of its ranks, which is the smallest of its sizes.
inline uint64_t room(const Plan& plan, const Where& where) {
  uint64_t least = UINT64_MAX;
  for (const uint32_t rank : where.ranks) {
    least = std::min(least, plan.gpus[rank].chunks[size_t(where.buffer)]);
  }
  return least;
}

/// Describes the other end of a channel. The n-th channel of a type to a peer pairs with the peer's n-th to
/// this rank.
struct ChannelEnd {
  uint32_t rank, id;
  auto operator<=>(const ChannelEnd&) const = default;
};
inline std::optional<ChannelEnd> mate(const Plan& plan, uint32_t rank, ChannelType type, uint32_t id) {
  const int64_t peer = plan.gpus[rank].peer(type, id);
  if (peer < 0) return {};
  uint32_t nth = 0;
  for (uint32_t before = 0; before < id; ++before) nth += plan.gpus[rank].peer(type, before) == peer;
  const Gpu& other = plan.gpus[size_t(peer)];
  for (uint32_t end = 0; end < other.channel_count(type); ++end) {
    if (other.peer(type, end) == rank && nth-- == 0) return ChannelEnd{uint32_t(peer), end};
  }
  return {};
}

/// Returns true if two operations of a block are in the same pipeline, or both in none.
inline bool same_loop(const ThreadBlock& block, uint32_t first, uint32_t second) {
  const auto loop = [&](uint32_t op) {
    for (uint32_t at = 0; at < op; ++at) {
      if (block.ops[at].body && op <= at + block.ops[at].body) return int64_t(at);
    }
    return int64_t(-1);
  };
  return loop(first) == loop(second);
}

/// Returns the nearest operation before `op` for which wanted() holds; nothing if it is in another pipeline.
template <class Wanted>
std::optional<uint32_t> nearest_before(const ThreadBlock& block, uint32_t op, Wanted&& wanted) {
  for (uint32_t at = op; at-- > 0;) {
    if (wanted(block.ops[at])) return same_loop(block, at, op) ? std::optional(at) : std::nullopt;
  }
  return {};
}
/// Returns the nearest operation after `op` for which wanted() holds; nothing if it is in another pipeline.
template <class Wanted>
std::optional<uint32_t> nearest_behind(const ThreadBlock& block, uint32_t op, Wanted&& wanted) {
  for (uint32_t at = op + 1; at < block.ops.size(); ++at) {
    if (wanted(block.ops[at])) return same_loop(block, at, op) ? std::optional(at) : std::nullopt;
  }
  return {};
}

}  // namespace chorale::mutation
