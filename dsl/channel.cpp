#include "chorale/dsl/channel.hpp"

#include "dsl/call.hpp"

namespace chorale::dsl {
namespace {

Place source(int64_t rank) { return {rank, "the source of this channel", "use a channel whose source is"}; }

Place peer(int64_t rank) {
  return {rank, "the destination of this channel", "use a channel whose destination is"};
}

}  // namespace

Channel::Channel(Program& program, ChannelType type, int64_t dst_rank, int64_t src_rank, Here at)
    : recording_(&Recording::of(program)), type_(type), dst_rank_(dst_rank), src_rank_(src_rank), made_(at) {
  Call call(*recording_, at);
  call.rank("destination rank", dst_rank);
  call.rank("source rank", src_rank);
  if (call.ok() && dst_rank == src_rank) {
    call.fail(
        say("the channel leads from rank ", src_rank, " to rank ", dst_rank, ", but needs two ranks"),
        "leave the rank itself out of its peers; inside a rank use Rank::copy, a barrier or a Semaphore");
  }
  poisoned_ = !call.ok();
  if (!poisoned_) id_ = recording_->add_channel(type, src_rank, dst_rank, at);
}

void Channel::control(Opcode code, int64_t tb, SyncType data_sync, Here at) const {
  Call call(*recording_, at, poisoned_, "the channel", made_);
  call.block(tb);
  call.data_sync(data_sync);
  if (!call.ok()) return;
  RecordedOp step;
  step.code = code;
  step.via = type_;
  step.sync = data_sync;
  step.channel = id_;
  step.names_channel = true;
  call.record(step, src_rank_, tb);
}

void Channel::put(Opcode code, Chunk dst, Chunk src, Block block, Here at) const {
  Call call(*recording_, at, poisoned_, "the channel", made_);
  if (!call.swapped(dst, dst_rank_, src, src_rank_)) {
    call.chunk("dst", dst, peer(dst_rank_));
    call.chunk("src", src, source(src_rank_));
  }
  call.same_size("dst", dst, "src", src);
  if (info(code).has(Role::RemotePacketWrite))
    call.in_scratch("dst", dst, "put() writes plain data to any buffer");
  if (info(code).has(Role::PacketRead))
    call.in_scratch("src", src, "put_packets() reads plain data from any buffer");
  call.block(block);
  if (!call.ok()) return;
  RecordedOp step;
  step.code = code;
  step.via = type_;
  const Region from = here(src), to = at_peer(dst);
  step.sources = {&from, 1};
  step.dests = {&to, 1};
  step.channel = id_;
  step.names_channel = has_proxy(type_);
  call.record(step, src_rank_, block);
}

MemoryChannel::MemoryChannel(Program& program, int64_t dst_rank, int64_t src_rank, Here at)
    : MemoryChannel(program, ChannelType::memory, dst_rank, src_rank, at) {}

MemoryChannel::MemoryChannel(Program& program, ChannelType type, int64_t dst_rank, int64_t src_rank, Here at)
    : Channel(program, type, dst_rank, src_rank, at) {}

void MemoryChannel::signal(int64_t tb, SyncType data_sync, bool relaxed, Here at) const {
  control(relaxed ? Opcode::relaxed_signal : Opcode::signal, tb, data_sync, at);
}

void MemoryChannel::wait(int64_t tb, SyncType data_sync, bool relaxed, Here at) const {
  control(relaxed ? Opcode::relaxed_wait : Opcode::wait, tb, data_sync, at);
}

void MemoryChannel::put(Chunk dst, Chunk src, Block tb, Here at) const {
  Channel::put(Opcode::put, dst, src, tb, at);
}

void MemoryChannel::get(Chunk dst, Chunk src, Block tb, Here at) const {
  Call call(*recording_, at, poisoned_, "the channel", made_);
  if (!call.swapped(dst, src_rank_, src, dst_rank_)) {
    call.chunk("dst", dst, source(src_rank_));
    call.chunk("src", src, peer(dst_rank_));
  }
  call.same_size("dst", dst, "src", src);
  call.block(tb);
  if (!call.ok()) return;
  RecordedOp step;
  step.code = Opcode::get;
  step.via = type_;
  const Region from = at_peer(src), to = here(dst);
  step.sources = {&from, 1};
  step.dests = {&to, 1};
  step.channel = id_;
  step.names_channel = true;
  call.record(step, src_rank_, tb);
}

void MemoryChannel::put_packets(Chunk dst, Chunk src, Block tb, Here at) const {
  Channel::put(Opcode::put_packets, dst, src, tb, at);
}

void MemoryChannel::read_put_packets(Chunk dst, Chunk src, Block tb, Here at) const {
  Channel::put(Opcode::read_put_packets, dst, src, tb, at);
}

void MemoryChannel::reduce(Chunk local_src, const std::vector<Chunk>& remote_srcs, Block tb,
                           std::optional<Chunk> local_dst, ReduceOp reduce_op, Here at) const {
  Call call(*recording_, at, poisoned_, "the channel", made_);
  call.chunk("local_src", local_src, source(src_rank_));
  if (local_dst) {
    call.chunk("local_dst", *local_dst, source(src_rank_));
    call.same_size("local_dst", *local_dst, "local_src", local_src);
  }
  if (remote_srcs.empty()) {
    call.fail(say(call.name("remote_srcs"), " is empty, but ", call.name("local_src"),
                  " has to be combined with at least 1 chunk"));
  }
  std::vector<Region>& sources = recording_->sources();
  sources.push_back(here(local_src));
  for (size_t k = 0; k < remote_srcs.size(); ++k) {
    const Name name("remote_srcs", int64_t(k));
    call.chunk(name, remote_srcs[k], peer(dst_rank_));
    call.same_size(name, remote_srcs[k], "local_src", local_src);
    sources.push_back(at_peer(remote_srcs[k]));
  }
  call.reduce_op(reduce_op);
  call.block(tb);
  if (!call.ok()) return;
  RecordedOp step;
  step.code = Opcode::read_reduce;
  step.via = type_;
  step.reduce_op = reduce_op;
  const Region to = here(local_dst.value_or(local_src));
  step.sources = sources;
  step.dests = {&to, 1};
  step.channel = id_;
  call.record(step, src_rank_, tb);
}

PortChannel::PortChannel(Program& program, int64_t dst_rank, int64_t src_rank, Here at)
    : PortChannel(program, ChannelType::port, dst_rank, src_rank, at) {}

PortChannel::PortChannel(Program& program, ChannelType type, int64_t dst_rank, int64_t src_rank, Here at)
    : Channel(program, type, dst_rank, src_rank, at) {}

void PortChannel::signal(int64_t tb, SyncType data_sync, Here at) const {
  control(Opcode::signal, tb, data_sync, at);
}

void PortChannel::wait(int64_t tb, SyncType data_sync, Here at) const {
  control(Opcode::wait, tb, data_sync, at);
}

void PortChannel::flush(int64_t tb, SyncType data_sync, Here at) const {
  control(Opcode::flush, tb, data_sync, at);
}

void PortChannel::put(Chunk dst, Chunk src, int64_t tb, Here at) const {
  Channel::put(Opcode::put, dst, src, tb, at);
}

void PortChannel::put_with_signal(Chunk dst, Chunk src, int64_t tb, Here at) const {
  Channel::put(Opcode::put_with_signal, dst, src, tb, at);
}

void PortChannel::put_with_signal_and_flush(Chunk dst, Chunk src, int64_t tb, Here at) const {
  Channel::put(Opcode::put_with_signal_and_flush, dst, src, tb, at);
}

void PortChannel::put_packets(Chunk dst, Chunk src, int64_t tb, Here at) const {
  Channel::put(Opcode::put_packets, dst, src, tb, at);
}

void PortChannel::read_put_packets(Chunk dst, Chunk src, Block tb, Here at) const {
  Channel::put(Opcode::read_put_packets, dst, src, tb, at);
}

}  // namespace chorale::dsl
