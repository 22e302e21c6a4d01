#include "edit.hpp"

#include <algorithm>
#include <utility>

#include "chorale/collective.hpp"
#include "compiler/plan/resolve.hpp"
#include "compiler/plan/roles.hpp"

namespace chorale::mutation {
namespace {

/// Returns the position of the pipeline around an operation, or -1.
int64_t loop_around(const ThreadBlock& block, uint32_t op) {
  for (uint32_t at = 0; at < op; ++at) {
    if (block.ops[at].body && op <= at + block.ops[at].body) return at;
  }
  return -1;
}

void make_longer(ThreadBlock& block, int64_t loop, int32_t by) {
  if (loop >= 0) block.ops[size_t(loop)].body = uint32_t(int64_t(block.ops[size_t(loop)].body) + by);
}

}  // namespace

Edit::~Edit() {
  while (!undo_.empty()) {
    undo_.back()();
    undo_.pop_back();
  }
}

ThreadBlock& Edit::block(const OpPlace& at) {
  return change(plan_.gpus[at.rank].threadblocks[at.threadblock]);
}

void Edit::erase(const OpPlace& at) {
  ThreadBlock& in = block(at);
  make_longer(in, loop_around(in, at.op), -1);
  in.ops.erase(in.ops.begin() + at.op);
}

void Edit::insert(const OpPlace& before, const Op& op) {
  const Op copy = op;
  ThreadBlock& in = block(before);
  make_longer(in, loop_around(in, before.op), 1);
  in.ops.insert(in.ops.begin() + before.op, copy);
}

void Edit::insert_behind(const OpPlace& at, const Op& op) {
  const Op copy = op;
  ThreadBlock& in = block(at);
  make_longer(in, loop_around(in, at.op), 1);
  in.ops.insert(in.ops.begin() + at.op + 1, copy);
}

void Edit::move_before(const OpPlace& at, uint32_t before) {
  ThreadBlock& in = block(at);
  make_longer(in, loop_around(in, at.op), -1);
  const Op moved = in.ops[at.op];
  in.ops.erase(in.ops.begin() + at.op);
  make_longer(in, loop_around(in, before), 1);
  in.ops.insert(in.ops.begin() + before, moved);
}

void Edit::set_operands(const OpPlace& at, std::vector<Operand> sources, std::vector<Operand> dests) {
  ThreadBlock& in = block(at);
  Op& op = in.ops[at.op];
  op.first_operand = uint32_t(in.operands.size());
  op.sources = uint16_t(sources.size());
  op.destinations = uint16_t(dests.size());
  in.operands.insert(in.operands.end(), sources.begin(), sources.end());
  in.operands.insert(in.operands.end(), dests.begin(), dests.end());
}

void Edit::set_ids(const OpPlace& at, std::vector<uint32_t> ids) {
  ThreadBlock& in = block(at);
  Op& op = in.ops[at.op];
  op.first_id = uint32_t(in.ids.size());
  op.ids = uint16_t(ids.size());
  in.ids.insert(in.ids.end(), ids.begin(), ids.end());
}

void Edit::erase_id(const OpPlace& at, uint32_t position) {
  const ThreadBlock& in = plan_.gpus[at.rank].threadblocks[at.threadblock];
  const std::span<const uint32_t> ids = in.op_ids(in.ops[at.op]);
  if (ids.size() < 2) return erase(at);
  std::vector<uint32_t> fewer(ids.begin(), ids.end());
  fewer.erase(fewer.begin() + position);
  set_ids(at, std::move(fewer));
}

uint32_t Edit::channel(const OpPlace& at, ChannelType type, uint32_t of_rank) {
  ThreadBlock& in = block(at);
  for (ChannelRefs& refs : in.channels) {
    if (refs.type != type) continue;
    const auto found = std::find(refs.ids.begin(), refs.ids.end(), of_rank);
    const uint32_t position = uint32_t(found - refs.ids.begin());
    if (found == refs.ids.end()) refs.ids.push_back(of_rank);
    return position;
  }
  in.channels.push_back({type, {of_rank}});
  return 0;
}

uint32_t Edit::remote_buffer(const OpPlace& at, ChannelType via, uint32_t peer, BufferKind buffer) {
  std::vector<RemoteBuffer>& all = change(plan_.gpus[at.rank].remote_buffers);
  auto found = std::find_if(all.begin(), all.end(), [&](const RemoteBuffer& remote) {
    return remote.rank == peer && remote.buffer == buffer;
  });
  if (found == all.end()) found = all.insert(all.end(), {peer, buffer, {}});
  if (std::find(found->access.begin(), found->access.end(), via) == found->access.end()) {
    found->access.push_back(via);
  }
  const uint32_t of_rank = uint32_t(found - all.begin());
  ThreadBlock& in = block(at);
  for (RemoteBufferRefs& refs : in.remote_buffers) {
    if (refs.type != via) continue;
    const auto listed = std::find(refs.ids.begin(), refs.ids.end(), of_rank);
    const uint32_t position = uint32_t(listed - refs.ids.begin());
    if (listed == refs.ids.end()) refs.ids.push_back(of_rank);
    return position;
  }
  in.remote_buffers.push_back({via, {of_rank}});
  return 0;
}

uint32_t Edit::add_channel(uint32_t rank, uint32_t peer, ChannelType type) {
  const auto add = [&](uint32_t from, uint32_t to) {
    std::vector<ChannelRecord>& records = change(plan_.gpus[from].channels);
    // We append to the last record, because a new id elsewhere would change the ids after it.
    const auto last = std::find_if(records.rbegin(), records.rend(),
                                   [&](const ChannelRecord& record) { return record.type == type; });
    if (last != records.rend()) {
      last->connected_to.push_back(to);
    } else {
      ChannelRecord& record = records.emplace_back();
      record.type = type;
      record.connected_to = {to};
    }
    return plan_.gpus[from].channel_count(type) - 1;
  };
  add(peer, rank);
  return add(rank, peer);
}

bool Edit::cut_chunks() {
  if (!is_standard(plan_.collective)) {
    for (const Gpu& gpu : plan_.gpus) {
      if (!std::equal(gpu.chunks, gpu.chunks + 2, plan_.gpus[0].chunks)) return false;
    }
    const Segmentation logical = segmentation(plan_);
    Extension& extension = change(plan_.extension);
    extension.input_segments = logical.input;
    extension.output_segments = logical.output;
  }
  for (Gpu& gpu : change(plan_.gpus)) {
    for (uint64_t& chunks : gpu.chunks) chunks *= 2;
    for (ThreadBlock& block : gpu.threadblocks) {
      for (Operand& operand : block.operands) {
        operand.index *= 2;
        operand.size *= 2;
      }
      for (Op& op : block.ops) op.chunks *= 2;
    }
  }
  return true;
}

}  // namespace chorale::mutation
