// This rewrite makes k instances of the program. Instance j of thread block t is thread block t * k + j. It
// has its own channels, semaphores and barriers (c * k + j). A region [x, x + s) of a logical buffer becomes
// [k * x, k * (x + s)), and instance j takes the j-th of its k parts of s chunks.
//
// It is correct because the instances access disjoint chunks and share no channel, semaphore or barrier, so
// each is the program on a k-th of every chunk. Every operand of every role is moved exactly once, including
// packets and switch regions, because operands are values. Size and meaning of the message do not change, so
// the segments of the collective stay the logical ones.
//
// It costs k times the thread blocks and the plan. Its time is linear in the size of the result.

#include <utility>

#include "chorale/collective.hpp"
#include "chorale/rewrites.hpp"
#include "compiler/plan/resolve.hpp"

namespace chorale {
namespace {

/// Repeats each element k times in place.
template <class T>
std::vector<T> repeated(const std::vector<T>& list, uint32_t instances) {
  std::vector<T> out;
  out.reserve(list.size() * instances);
  for (const T& item : list) out.insert(out.end(), instances, item);
  return out;
}

ThreadBlock instance_of(const ThreadBlock& block, uint32_t instances, uint32_t instance) {
  ThreadBlock copy = block;
  copy.id = block.id * instances + instance;
  for (ChannelRefs& refs : copy.channels) {
    for (uint32_t& id : refs.ids) id = id * instances + instance;
  }
  for (Operand& operand : copy.operands) operand.index = operand.index * instances + instance * operand.size;
  for (const Op& op : copy.ops) {
    const OpInfo& row = info(op.code);
    if (!row.has(Role::Acquire) && !row.has(Role::Release) && !row.has(Role::Arrive)) continue;
    // Ids of channels stay, because they are positions in the block's own list.
    for (uint32_t k = op.first_id; k < op.first_id + op.ids; ++k)
      copy.ids[k] = block.ids[k] * instances + instance;
  }
  return copy;
}

void replicate_channels(Gpu& gpu, uint32_t instances) {
  std::vector<ChannelRecord> records;
  for (ChannelRecord& record : gpu.channels) {
    // MSCCL++ has one rank group per record.
    const bool single = record.rank_groups.size() == 1;
    record.connected_to = repeated(record.connected_to, instances);
    record.at = repeated(record.at, instances);
    if (!single) record.rank_groups = repeated(record.rank_groups, instances);
    records.insert(records.end(), single ? instances : 1, record);
  }
  gpu.channels = std::move(records);
}

/// Fixes the segments of a collective without a layout of its own. They count logical chunks, so this happens
/// before the number of chunks grows.
void keep_segments(Plan& plan) {
  if (is_standard(plan.collective)) return;
  const auto equal = [&](size_t buffer) {
    return std::all_of(plan.gpus.begin(), plan.gpus.end(),
                       [&](const Gpu& gpu) { return gpu.chunks[buffer] == plan.gpus[0].chunks[buffer]; });
  };
  const Segmentation logical = segmentation(plan);
  if (equal(size_t(BufferKind::input))) plan.extension.input_segments = logical.input;
  if (equal(size_t(BufferKind::output))) plan.extension.output_segments = logical.output;
}

}  // namespace

bool pass::replicate(Plan& plan, const CompileOptions& options) {
  const uint32_t instances = options.instances;
  if (instances <= 1 || options.replication == ReplicationPolicy::none) return false;
  keep_segments(plan);
  for (Gpu& gpu : plan.gpus) {
    std::vector<ThreadBlock> blocks;
    blocks.reserve(gpu.threadblocks.size() * instances);
    for (const ThreadBlock& block : gpu.threadblocks) {
      for (uint32_t instance = 0; instance < instances; ++instance) {
        blocks.push_back(instance_of(block, instances, instance));
      }
    }
    gpu.threadblocks = std::move(blocks);
    replicate_channels(gpu, instances);
    gpu.semaphores = repeated(gpu.semaphores, instances);
    for (uint64_t& chunks : gpu.chunks) chunks *= instances;
  }
  return true;
}

}  // namespace chorale
