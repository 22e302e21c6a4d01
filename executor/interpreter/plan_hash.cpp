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
