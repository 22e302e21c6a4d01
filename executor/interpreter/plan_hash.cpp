#include "plan_hash.hpp"

#include <cstring>
#include <string>
#include <vector>

namespace chorale::interpreter {
namespace {

constexpr uint64_t odd = 0x9e3779b97f4a7c15u;

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * odd;
  return hash ^ (hash >> 32);
}

uint64_t mix(uint64_t hash, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  for (; bytes >= 8; at += 8, bytes -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    hash = (hash ^ word) * odd;
    hash ^= hash >> 29;
  }
  uint64_t word = bytes;
  if (bytes) std::memcpy(&word, at, bytes);
  return mix(hash, word + bytes);
}

template <class T>
uint64_t mix(uint64_t hash, const std::vector<T>& list, bool content) {
  hash = mix(mix(hash, reinterpret_cast<uint64_t>(list.data())), list.size());
  return content ? mix(hash, list.data(), list.size() * sizeof(T)) : hash;
}

}  // namespace

// Field by field and not as text: every rank of a process does this, and the text of a large plan takes more
// memory and time than the plan. Pools are walked by operation, since their order is free.
uint64_t content_hash(const Plan& plan) {
  uint64_t hash = odd;
  const auto add = [&hash](auto... values) { ((hash = mix(hash, uint64_t(values))), ...); };
  const auto add_list = [&](const auto& list) {
    add(list.size());
    for (const auto value : list) add(value);
  };
  hash = mix(hash, plan.name.data(), plan.name.size());
  if (plan.only_rank) return mix(hash, plan.digest);  // the ranks hold different parts of one file
  hash = mix(hash, plan.collective.data(), plan.collective.size());
  add(plan.protocol, plan.inplace, plan.reuse_resources, plan.use_double_scratch_buffer,
      plan.threads_per_block);
  add(plan.buffer_alignment, plan.min_message_size, plan.max_message_size);
  add(plan.extension.root, plan.extension.input_segments, plan.extension.output_segments, plan.gpus.size());
  for (const Gpu& gpu : plan.gpus) {
    add(gpu.id, gpu.chunks[0], gpu.chunks[1], gpu.chunks[2], gpu.threadblocks.size());
    for (const ThreadBlock& block : gpu.threadblocks) {
      add(block.id, block.ops.size());
      for (const Op& op : block.ops) {
        add(op.code, op.via, op.reduce_op, op.sources, op.destinations, op.ids);
        add(op.group_index, op.group_size, op.participants, op.body, op.unit_bytes, op.chunks);
        for (const Operand& from : block.sources(op)) add(from.index, from.size, from.ref);
        for (const Operand& to : block.dests(op)) add(to.index, to.size, to.ref);
        for (const uint32_t id : block.op_ids(op)) add(id);
      }
      for (const ChannelRefs& refs : block.channels) add(refs.type), add_list(refs.ids);
      for (const RemoteBufferRefs& refs : block.remote_buffers) add(refs.type), add_list(refs.ids);
    }
    for (const ChannelRecord& record : gpu.channels) {
      add(record.type, record.buffer), add_list(record.connected_to);
      for (const std::vector<uint32_t>& ranks : record.rank_groups) add_list(ranks);
    }
    for (const RemoteBuffer& remote : gpu.remote_buffers) add(remote.rank, remote.buffer);
    add_list(gpu.semaphores);
  }
  return hash;
}

uint64_t memory_hash(const Plan& plan, uint32_t rank) {
  constexpr size_t small = 512;  // operations
  size_t ops = 0;
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) ops += block.ops.size();
  }
  uint64_t hash = mix(odd, plan.name.data(), plan.name.size());
  hash = mix(hash, plan.collective.data(), plan.collective.size());
  hash = mix(mix(hash, plan.buffer_alignment), uint64_t(plan.inplace) * 2 + plan.use_double_scratch_buffer);
  hash = mix(mix(hash, plan.min_message_size), plan.max_message_size);
  hash = mix(mix(hash, plan.extension.input_segments), plan.extension.output_segments);
  hash = mix(hash, plan.extension.root);
  hash = mix(hash, plan.gpus, false);
  for (const Gpu& gpu : plan.gpus) {
    const bool content = ops <= small || &gpu == &plan.gpus[rank];
    hash = mix(hash, gpu.chunks, sizeof gpu.chunks);
    hash = mix(hash, gpu.semaphores, content);
    hash = mix(hash, gpu.channels, false);
    hash = mix(hash, gpu.remote_buffers, false);
    hash = mix(hash, gpu.threadblocks, false);
    if (!content) continue;
    for (const ChannelRecord& record : gpu.channels) hash = mix(hash, record.connected_to, true);
    for (const RemoteBuffer& remote : gpu.remote_buffers) {
      hash = mix(mix(hash, remote.rank), uint64_t(remote.buffer));
    }
    for (const ThreadBlock& block : gpu.threadblocks) {
      hash = mix(mix(mix(hash, block.ops, true), block.operands, true), block.ids, true);
      for (const ChannelRefs& refs : block.channels) hash = mix(hash, refs.ids, true);
      for (const RemoteBufferRefs& refs : block.remote_buffers) hash = mix(hash, refs.ids, true);
    }
  }
  return hash;
}

}  // namespace chorale::interpreter
