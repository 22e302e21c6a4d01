#include "chorale/dsl/rank.hpp"

#include <unordered_map>

#include "dsl/call.hpp"

namespace chorale::dsl {
namespace {

Place this_rank(int64_t rank) {
  return {rank, "the rank of this call", "move the data by a channel to or from"};
}

}  // namespace

Rank::Rank(Program& program, int64_t rank, Here at)
    : recording_(&Recording::of(program)), rank_(rank), made_(at) {
  poisoned_ = !Call(*recording_, at).rank("rank", rank);
}

BaseBuffer Rank::get_input_buffer() const {
  const int64_t size =
      poisoned_ ? 0 : int64_t(recording_->plan().gpus[rank_].chunks[size_t(BufferKind::input)]);
  return {recording_, rank_, BufferKind::input, 0, size, poisoned_};
}

BaseBuffer Rank::get_output_buffer() const {
  const int64_t size =
      poisoned_ ? 0 : int64_t(recording_->plan().gpus[rank_].chunks[size_t(BufferKind::output)]);
  return {recording_, rank_, BufferKind::output, 0, size, poisoned_};
}

void Rank::transfer(Opcode code, Chunk dst, Chunk src, Block block, Here at) const {
  Call call(*recording_, at, poisoned_, "the rank", made_);
  call.chunk("dst", dst, this_rank(rank_));
  call.chunk("src", src, this_rank(rank_));
  call.same_size("dst", dst, "src", src);
  if (code == Opcode::copy_packets) call.in_scratch("dst", dst, "copy() writes plain data to any buffer");
  if (code == Opcode::unpack_packets) call.in_scratch("src", src, "copy() reads plain data from any buffer");
  call.block(block);
  if (!call.ok()) return;
  RecordedOp step;
  step.code = code;
  const Region from = here(src), to = here(dst);
  step.sources = {&from, 1};
  step.dests = {&to, 1};
  call.record(step, rank_, block);
}

void Rank::copy(Chunk dst, Chunk src, Block tb, Here at) const { transfer(Opcode::copy, dst, src, tb, at); }

void Rank::copy_packets(Chunk dst, Chunk src, Block tb, Here at) const {
  transfer(Opcode::copy_packets, dst, src, tb, at);
}

void Rank::unpack_packets(Chunk dst, Chunk src, Block tb, Here at) const {
  transfer(Opcode::unpack_packets, dst, src, tb, at);
}

void Rank::reduce(Chunk src, const std::vector<Chunk>& others, Block tb, std::optional<Chunk> dst,
                  ReduceOp reduce_op, bool packet, Here at) const {
  Call call(*recording_, at, poisoned_, "the rank", made_);
  call.chunk("src", src, this_rank(rank_));
  if (dst) {
    call.chunk("dst", *dst, this_rank(rank_));
    call.same_size("dst", *dst, "src", src);
  }
  if (others.empty()) {
    call.fail(say(call.name("others"), " is empty, but ", call.name("src"),
                  " has to be combined with at least 1 chunk"));
  }
  std::vector<Region>& sources = recording_->sources();
  sources.push_back(here(src));
  for (size_t k = 0; k < others.size(); ++k) {
    const Name name("others", int64_t(k));
    call.chunk(name, others[k], this_rank(rank_));
    call.same_size(name, others[k], "src", src);
    if (packet) call.in_scratch(name, others[k], "only src, the first operand, may be plain data");
    sources.push_back(here(others[k]));
  }
  call.reduce_op(reduce_op);
  call.block(tb);
  if (!call.ok()) return;
  RecordedOp step;
  step.code = packet ? Opcode::reduce_packets : Opcode::reduce;
  step.reduce_op = reduce_op;
  const Region to = here(dst.value_or(src));
  step.sources = sources;
  step.dests = {&to, 1};
  call.record(step, rank_, tb);
}

void Rank::combine_packets(Chunk dst, const std::vector<Chunk>& packets, Block tb, ReduceOp reduce_op,
                           Here at) const {
  Call call(*recording_, at, poisoned_, "the rank", made_);
  call.chunk("dst", dst, this_rank(rank_));
  if (packets.empty()) {
    call.fail(say("packets is empty, but ", call.name("dst"), " needs at least 1 chunk to be made of"));
  }
  std::vector<Region>& sources = recording_->sources();
  for (size_t k = 0; k < packets.size(); ++k) {
    const Name name("packets", int64_t(k));
    call.chunk(name, packets[k], this_rank(rank_));
    call.same_size(name, packets[k], "dst", dst);
    call.in_scratch(name, packets[k], "reduce() with packet = true adds packets to plain data, its src");
    sources.push_back(here(packets[k]));
  }
  call.reduce_op(reduce_op);
  call.block(tb);
  if (!call.ok()) return;
  RecordedOp step;
  step.code = Opcode::combine_packets;
  step.reduce_op = reduce_op;
  const Region to = here(dst);
  step.sources = sources;
  step.dests = {&to, 1};
  call.record(step, rank_, tb);
}

void Rank::barrier(const NumberList& tb_list, Here at) const {
  Call call(*recording_, at, poisoned_, "the rank", made_);
  const std::vector<int64_t>& blocks = tb_list.numbers();
  if (blocks.size() > max_list)
    call.fail(say("the barrier has ", blocks.size(), " thread blocks, but at most ", max_list, " fit"));
  if (blocks.empty()) call.fail("the barrier has no thread blocks, but needs at least 1");
  std::unordered_map<int64_t, size_t> seen;
  for (size_t k = 0; k < blocks.size(); ++k) {
    call.block(blocks[k]);
    const auto [first, added] = seen.try_emplace(blocks[k], k);
    if (!added) {
      call.fail(say("thread block ", blocks[k], " is in the barrier twice, at positions ", first->second,
                    " and ", k, ", but can arrive only once"));
    }
  }
  if (!call.ok()) return;
  RecordedOp step;
  uint32_t id = 0;
  if (blocks.size() > 1) {
    step.code = Opcode::barrier;
    id = recording_->barrier_id(rank_, blocks);
    step.ids = {&id, 1};
    step.participants = uint16_t(blocks.size());
  }
  for (const int64_t block : blocks) call.record(step, rank_, block);
}

Semaphore::Semaphore(Program& program, int64_t rank, int64_t initial_value, Here at)
    : recording_(&Recording::of(program)), rank_(rank) {
  Call call(*recording_, at);
  call.rank("the rank of the semaphore", rank);
  call.within("initial_value", initial_value, 0, INT32_MAX);
  poisoned_ = !call.ok();
  if (!poisoned_) id_ = recording_->add_semaphore(rank, initial_value);
}

void Semaphore::record(Opcode code, int64_t tb, SyncType data_sync, Here at) const {
  Call call(*recording_, at, poisoned_, "the semaphore");
  call.block(tb);
  call.data_sync(data_sync);
  if (!call.ok()) return;
  RecordedOp step;
  step.code = code;
  step.sync = data_sync;
  const auto id = uint32_t(id_);
  step.ids = {&id, 1};
  call.record(step, rank_, tb);
}

void Semaphore::acquire(int64_t tb, SyncType data_sync, Here at) const {
  record(Opcode::sem_acquire, tb, data_sync, at);
}

void Semaphore::release(int64_t tb, SyncType data_sync, Here at) const {
  record(Opcode::sem_release, tb, data_sync, at);
}

}  // namespace chorale::dsl
