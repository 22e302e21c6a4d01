// This file looks things up in a plan and appends to it.

#include "chorale/plan.hpp"

#include <algorithm>
#include <cassert>
#include <functional>

#include "chorale/collective.hpp"

namespace chorale {
namespace {

/// Reserves room for `more` elements. Pools grow by half, because doubling would leave a third of a large
/// plan's memory unused.
template <class T>
void make_room(std::vector<T>& pool, size_t more) {
  const size_t wanted = pool.size() + more;
  if (wanted > pool.capacity()) pool.reserve(std::max(wanted, pool.size() + pool.size() / 2));
}

/// Appends `more` to `pool`. `more` may be a part of `pool`.
template <class T>
void extend(std::vector<T>& pool, std::span<const T> more) {
  const std::less<const T*> before;
  const bool own =
      !more.empty() && !before(more.data(), pool.data()) && before(more.data(), pool.data() + pool.size());
  if (!own) {
    make_room(pool, more.size());
    pool.insert(pool.end(), more.begin(), more.end());
    return;
  }
  const size_t from = more.data() - pool.data();
  for (size_t k = 0; k < more.size(); ++k) {
    const T value = pool[from + k];  // a copy, because push_back may move the element
    pool.push_back(value);
  }
}

}  // namespace

uint32_t Plan::thread_blocks() const {
  size_t most = 0;
  for (const Gpu& gpu : gpus) most = std::max(most, gpu.threadblocks.size());
  return uint32_t(most);
}

uint32_t Gpu::channel_count(ChannelType type) const {
  size_t count = 0;
  for (const ChannelRecord& record : channels) {
    if (record.type != type) continue;
    count += is_switched(type) ? record.rank_groups.size() : record.connected_to.size();
  }
  return uint32_t(count);
}

uint32_t Gpu::first_signal(ChannelType type) const {
  uint32_t first = 0;
  for (const ChannelType before : signalled_types) {
    if (before == type) break;
    first += channel_count(before);
  }
  return first;
}

SwitchGroup Gpu::switch_group(uint32_t id) const {
  size_t left = id;
  for (const ChannelRecord& record : channels) {
    if (record.type != ChannelType::switched) continue;
    if (left < record.rank_groups.size()) return {record.buffer, &record.rank_groups[left]};
    left -= record.rank_groups.size();
  }
  return {BufferKind::input, nullptr};
}

Segmentation segmentation(const Plan& plan) {
  const uint64_t ranks = plan.ranks();
  const CollectiveInfo& collective = collective_info(plan.collective);
  if (collective.is_standard()) return {collective.input_parts(ranks), collective.output_parts(ranks)};
  Segmentation own{plan.extension.input_segments, plan.extension.output_segments};
  for (const Gpu& gpu : plan.gpus) {
    if (!plan.extension.input_segments)
      own.input = std::max(own.input, gpu.chunks[size_t(BufferKind::input)]);
    if (!plan.extension.output_segments)
      own.output = std::max(own.output, gpu.chunks[size_t(BufferKind::output)]);
  }
  return {std::max<uint64_t>(own.input, 1), std::max<uint64_t>(own.output, 1)};
}

Op& append(ThreadBlock& block, Opcode code, std::span<const Operand> sources, std::span<const Operand> dests,
           std::span<const uint32_t> ids) {
  Op op;
  op.code = code;
  op.first_operand = uint32_t(block.operands.size());
  assert(sources.size() <= max_list && dests.size() <= max_list && ids.size() <= max_list);
  op.sources = uint16_t(sources.size());
  op.destinations = uint16_t(dests.size());
  op.first_id = uint32_t(block.ids.size());
  op.ids = uint16_t(ids.size());
  // A destination list inside the pool must stay valid when the sources make the pool grow.
  const std::less<const Operand*> before;
  const Operand* pool = block.operands.data();
  const bool own =
      !dests.empty() && !before(dests.data(), pool) && before(dests.data(), pool + op.first_operand);
  const size_t from = own ? dests.data() - pool : 0;
  extend(block.operands, sources);
  extend(block.operands, own ? std::span<const Operand>(block.operands.data() + from, dests.size()) : dests);
  extend(block.ids, ids);
  make_room(block.ops, 1);
  return block.ops.emplace_back(op);
}

}  // namespace chorale
