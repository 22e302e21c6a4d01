#include "bench/check/ring.hpp"

#include <initializer_list>

namespace chorale::bench {
namespace {

constexpr uint32_t to_next = 0, to_previous = 1;       // indices of a block's channels
constexpr uint32_t next_scratch = 0, next_output = 1;  // indices of a block's remote buffers

class Rank {
 public:
  Rank(Gpu& gpu, uint32_t rank, uint32_t ranks)
      : gpu_(gpu), block_(gpu.threadblocks.emplace_back()), ranks_(ranks) {
    gpu.id = rank;
    for (uint64_t& chunks : gpu.chunks) chunks = ranks;
    const uint32_t next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    gpu.channels = {{.type = ChannelType::memory, .connected_to = {next, previous}}};
    gpu.remote_buffers = {{next, BufferKind::scratch, {ChannelType::memory}, 0},
                          {next, BufferKind::output, {ChannelType::memory}, 0}};
    block_.channels = {{ChannelType::memory, {to_next, to_previous}, 0}};
    block_.remote_buffers = {{ChannelType::memory, {next_scratch, next_output}, 0}};
    block_.ops.reserve(12 * size_t(ranks - 1));
    block_.operands.reserve(7 * size_t(ranks - 1));
    block_.ids.reserve(4 * size_t(ranks - 1));
  }

  void run() {
    for (uint32_t step = 0; step + 1 < ranks_; ++step) {
      const uint32_t sent = chunk(step), got = chunk(step + 1);
      put(step == 0 ? BufferKind::input : BufferKind::output, sent, next_scratch);
      exchange();
      const Operand sources[] = {local(BufferKind::input, got), local(BufferKind::scratch, got)};
      const Operand dests[] = {local(BufferKind::output, got)};
      append(block_, Opcode::reduce, sources, dests);
      nop();
    }
    for (uint32_t step = 0; step + 1 < ranks_; ++step) {
      put(BufferKind::output, chunk(step + ranks_ - 1), next_output);
      exchange();
    }
  }

 private:
  /// Returns the chunk that the rank passes on in a step.
  uint32_t chunk(uint32_t step) const { return (gpu_.id + 2 * ranks_ - step) % ranks_; }
  static Operand local(BufferKind buffer, uint64_t at) { return {at, 1, uint32_t(buffer), 0}; }

  void nop() { append(block_, Opcode::nop, {}, {}); }
  void put(BufferKind from, uint32_t at, uint32_t to) {
    const Operand sources[] = {local(from, at)}, dests[] = {{at, 1, to, 0}};
    append(block_, Opcode::put, sources, dests).via = ChannelType::memory;
  }
  void control(Opcode code, uint32_t channel) {
    const uint32_t ids[] = {channel};
    append(block_, code, {}, {}, ids).via = ChannelType::memory;
  }
  void exchange() {
    nop();
    control(Opcode::signal, to_next);
    control(Opcode::wait, to_previous);
    nop();
  }

  Gpu& gpu_;
  ThreadBlock& block_;
  uint32_t ranks_;
};

}  // namespace

Plan ring_allreduce(uint32_t ranks) {
  Plan plan;
  plan.name = "ring";
  plan.collective = "allreduce";
  plan.gpus.resize(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) Rank(plan.gpus[rank], rank, ranks).run();
  return plan;
}

}  // namespace chorale::bench
