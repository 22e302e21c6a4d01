#include "content_hash.hpp"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

#include "chorale/content_hash.hpp"
#include "compiler/schedule/json.hpp"

namespace chorale {
namespace {

constexpr uint64_t odd = 0x9e3779b97f4a7c15u;

uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * odd;
  return hash ^ (hash >> 32);
}

/// Hashes values one after the other. Certificates contain such hashes.
class Hash {
 public:
  void add(std::initializer_list<uint64_t> values) {
    for (const uint64_t value : values) at_ = mixed(at_, value);
  }
  uint64_t value() const { return at_; }

 private:
  uint64_t at_ = odd;
};

/// Hashes the values of each call of add() in four chains, which a processor computes at the same time.
class WideHash {
 public:
  template <size_t N>
  void add(const uint64_t (&values)[N]) {
    add(values, std::make_index_sequence<N>());
  }
  uint64_t value() const {
    Hash all;
    for (const uint64_t chain : at_) all.add({chain});
    return all.value();
  }

 private:
  // The indices are constants, so that the chains are in registers.
  template <size_t... Index>
  void add(const uint64_t* values, std::index_sequence<Index...>) {
    ((at_[Index % 4] = mixed(at_[Index % 4], values[Index])), ...);
  }

  uint64_t at_[4] = {odd, 2 * odd, 3 * odd, 4 * odd};
};

// A plan is hashed field by field instead of as text. Every rank of a process does this, and the text of a
// large plan takes more memory and time than the plan.

template <class AnyHash, class List>
void add_list(AnyHash& hash, const List& list) {
  hash.add({list.size()});
  for (const auto value : list) hash.add({uint64_t(value)});
}

void add_text(Hash& hash, const std::string& text) {
  hash.add({text.size()});
  for (size_t at = 0; at < text.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, std::min<size_t>(8, text.size() - at));
    hash.add({word});
  }
}

template <class AnyHash>
void add_rank(AnyHash& hash, const Gpu& gpu) {
  hash.add({gpu.id, gpu.chunks[0], gpu.chunks[1], gpu.chunks[2], gpu.threadblocks.size()});
  for (const ThreadBlock& block : gpu.threadblocks) {
    hash.add({block.id, block.ops.size()});
    // Operands and ids are hashed by operation, because their order in the pools is free.
    for (const Op& op : block.ops) {
      hash.add({uint64_t(op.code), uint64_t(op.via), uint64_t(op.reduce_op), op.sources, op.destinations,
                op.ids, op.group_index, op.group_size, op.participants, op.body, op.unit_bytes, op.chunks});
      for (const std::span<const Operand> operands : {block.sources(op), block.dests(op)}) {
        for (const Operand& of : operands) hash.add({of.index, of.size, uint64_t(of.codec) << 32 | of.ref});
      }
      for (const uint32_t id : block.op_ids(op)) hash.add({id});
    }
    for (const ChannelRefs& refs : block.channels) hash.add({uint64_t(refs.type)}), add_list(hash, refs.ids);
    for (const RemoteBufferRefs& refs : block.remote_buffers)
      hash.add({uint64_t(refs.type)}), add_list(hash, refs.ids);
  }
  for (const ChannelRecord& record : gpu.channels) {
    hash.add({uint64_t(record.type), uint64_t(record.buffer)});
    add_list(hash, record.connected_to);
    for (const std::vector<uint32_t>& ranks : record.rank_groups) add_list(hash, ranks);
  }
  for (const RemoteBuffer& remote : gpu.remote_buffers) hash.add({remote.rank, uint64_t(remote.buffer)});
  add_list(hash, gpu.semaphores);
}

}  // namespace

uint64_t top_hash(const Plan& plan) {
  Hash hash;
  add_text(hash, plan.name);
  add_text(hash, plan.collective);
  hash.add({uint64_t(plan.protocol), plan.inplace, plan.reuse_resources, plan.use_double_scratch_buffer,
            plan.threads_per_block, plan.buffer_alignment, plan.min_message_size, plan.max_message_size});
  const Extension& own = plan.extension;
  hash.add({own.root, own.input_segments, own.output_segments, own.bounded_proof, plan.gpus.size(),
            own.post.size()});
  for (const auto& segments : own.post) {
    hash.add({segments.size()});
    for (const auto& parts : segments) {
      hash.add({parts.size()});
      for (const Contribution& part : parts) hash.add({part.rank, part.chunk});
    }
  }
  for (const Codec& codec : own.codecs) hash.add({uint64_t(codec.format), codec.block});
  if (own.schedule) {
    std::string text;
    schedule::write_schedule(text, *own.schedule, {});
    add_text(hash, text);
  }
  return hash.value();
}

uint64_t rank_hash(const Gpu& gpu) {
  Hash hash;
  add_rank(hash, gpu);
  return hash.value();
}

uint64_t content_hash(const Plan& plan) {
  if (plan.only_rank) {  // the ranks hold different parts of one file
    Hash hash;
    add_text(hash, plan.name);
    hash.add({plan.digest});
    return hash.value();
  }
  WideHash hash;
  hash.add({top_hash(plan)});
  for (const Gpu& gpu : plan.gpus) add_rank(hash, gpu);
  return hash.value();
}

}  // namespace chorale
