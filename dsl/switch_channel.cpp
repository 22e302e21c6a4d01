#include "chorale/dsl/switch_channel.hpp"

#include <algorithm>

#include "dsl/call.hpp"

namespace chorale::dsl {
namespace {

std::string listed(const std::vector<int64_t>& ranks) {
  std::string text;
  for (const int64_t rank : ranks) text += say(text.empty() ? "" : ", ", rank);
  return text;
}

bool has(const std::vector<int64_t>& ranks, int64_t rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

void refuse_member(Call& call, int64_t rank, const std::vector<int64_t>& members) {
  call.fail_by_ranks(
      say("rank ", rank, " is not a member of this switch channel, whose ranks are ", listed(members)),
      say("make the call for a member, or add rank ", rank, " to the list of the switch channel"));
}

}  // namespace

SwitchChannel::SwitchChannel(Program& program, const NumberList& rank_list, BufferKind buffer_type, Here at)
    : recording_(&Recording::of(program)), ranks_(rank_list.numbers()), buffer_(buffer_type), made_(at) {
  Call call(*recording_, at);
  call.buffer_type(buffer_type);
  if (ranks_.empty()) call.fail("the rank list of the switch channel is empty, but needs at least 1 rank");
  for (size_t k = 0; k < ranks_.size(); ++k) {
    if (!call.rank("a rank of the switch channel", ranks_[k])) continue;
    const auto first = size_t(std::find(ranks_.begin(), ranks_.end(), ranks_[k]) - ranks_.begin());
    if (first < k) {
      call.fail(say("rank ", ranks_[k], " is in the switch channel twice, at positions ", first, " and ", k));
    }
  }
  poisoned_ = !call.ok();
  if (poisoned_) return;
  for (const int64_t rank : ranks_) ids_.push_back(recording_->add_switch_channel(rank, buffer_type, ranks_));
}

SwitchChannel::RankView SwitchChannel::at_rank(int64_t rank, Here at) const {
  Call call(*recording_, at, poisoned_, "the switch channel", made_);
  if (call.ok() && !has(ranks_, rank)) {
    refuse_member(call, rank, ranks_);
  }
  return {*this, rank, !call.ok()};
}

bool SwitchChannel::accepts(Call& call, const char* chunk_name, int64_t rank, int64_t offset, int64_t size,
                            const Chunk& chunk) const {
  if (!call.ok()) return false;
  if (!has(ranks_, rank)) {
    refuse_member(call, rank, ranks_);
    return false;
  }
  const bool sound = call.chunk(chunk_name, chunk, {rank, "the rank of this call", "make the call for"});
  const bool offset_fits = call.within("buffer_offset", offset, 0, max_count);
  const bool size_fits = call.within("size", size, 1, max_count);
  if (!offset_fits || !size_fits) return false;
  if (sound && chunk.size != size)
    call.fail(say(call.name(chunk_name), " has ", chunks(chunk.size), ", but size is ", size));
  for (const int64_t member : ranks_) {
    const uint64_t extent = recording_->plan().gpus[member].chunks[size_t(buffer_)];
    if (uint64_t(offset + size) <= extent) continue;
    call.fail(say("the region is ", chunks(size), " from chunk ", offset, ", but ",
                  buffer_of(member, buffer_), " has ", extent),
              buffer_ == BufferKind::scratch ? "allocate the scratch of every member first" : "");
    break;  // the members' buffers mostly have one size
  }
  return call.ok();
}

Region SwitchChannel::region(int64_t offset, int64_t size) const {
  return {Region::At::members, buffer_, 0, uint64_t(offset), uint64_t(size)};
}

void SwitchChannel::record(Call& call, RecordedOp step, int64_t rank, int64_t tb) const {
  call.block(tb);
  if (!call.ok()) return;
  step.via = ChannelType::switched;
  step.channel = ids_[size_t(std::find(ranks_.begin(), ranks_.end(), rank) - ranks_.begin())];
  call.record(step, rank, tb);
}

void SwitchChannel::reduce(int64_t rank, int64_t buffer_offset, int64_t size, Chunk dst, int64_t tb,
                           ReduceOp reduce_op, Here at) const {
  Call call(*recording_, at, poisoned_, "the switch channel", made_);
  accepts(call, "dst", rank, buffer_offset, size, dst);
  call.reduce_op(reduce_op);
  RecordedOp step;
  step.code = Opcode::switch_reduce;
  step.reduce_op = reduce_op;
  const Region from = region(buffer_offset, size), to = here(dst);
  step.sources = {&from, 1};
  step.dests = {&to, 1};
  record(call, step, rank, tb);
}

void SwitchChannel::broadcast(int64_t rank, Chunk src, int64_t buffer_offset, int64_t size, int64_t tb,
                              Here at) const {
  Call call(*recording_, at, poisoned_, "the switch channel", made_);
  accepts(call, "src", rank, buffer_offset, size, src);
  RecordedOp step;
  step.code = Opcode::switch_broadcast;
  const Region from = here(src), to = region(buffer_offset, size);
  step.sources = {&from, 1};
  step.dests = {&to, 1};
  record(call, step, rank, tb);
}

void SwitchChannel::broadcast_packets(int64_t rank, Chunk src, int64_t buffer_offset, int64_t size,
                                      int64_t tb, Here at) const {
  Call call(*recording_, at, poisoned_, "the switch channel", made_);
  accepts(call, "src", rank, buffer_offset, size, src);
  call.in_scratch("src", src, "broadcast() reads plain data from any buffer");
  if (call.ok() && buffer_ != BufferKind::scratch) {
    call.fail(say("the switch channel is over the ", buffer_names[size_t(buffer_)],
                  " buffers, but packets are kept in scratch"));
  }
  RecordedOp step;
  step.code = Opcode::switch_broadcast_packets;
  const Region from = here(src), to = region(buffer_offset, size);
  step.sources = {&from, 1};
  step.dests = {&to, 1};
  record(call, step, rank, tb);
}

}  // namespace chorale::dsl
