#pragma once
/// \file
/// A Program lists the instructions of the threads of all ranks. It is made once for a plan and a message,
/// and many schedules run it.

#include <cstdint>
#include <vector>

#include "arena.hpp"
#include "chorale/adversary.hpp"
#include "executor/lowering/bind.hpp"

namespace chorale::adversary {

enum class Code : uint8_t {
  sync,     ///< waits for the block's other threads
  move,     ///< loads one cell from all sources, combines them and stores to all destinations
  post,     ///< `id` is a signal; `relaxed` or not
  await,    ///< `id` is a signal of this rank
  drain,    ///< `id` is a queue
  push,     ///< `id` is one of Program::pushes
  acquire,  ///< `id` is a semaphore
  release,
  arrive,  ///< `id` is a barrier
};

struct Instruction {
  Code code = Code::sync;
  bool relaxed = false;
  ReduceOp op = ReduceOp::sum;
  uint16_t sources = 0, dests = 0;
  uint16_t codec = 0;  ///< of a move with encoded operands: Codec::packed()
  uint32_t participants = 0;
  uint32_t first = 0;   ///< for a move: the index in Program::refs, with sources before destinations
  uint32_t id = 0;      ///< `none` for a post for which no wait exists
  uint32_t record = 0;  ///< the index of the operation in the plan's thread block
};
inline constexpr uint32_t none = ~uint32_t{0};

/// Represents a transfer for a proxy, which copies cell by cell and then posts.
struct Push {
  uint32_t queue = 0;
  uint32_t first = 0, cells = 0;  ///< the index in Program::refs, with a source and a destination per cell
  bool posts = false;
  uint32_t signal = none;
};

/// Names the instructions [first, end) that one thread runs in a launch.
struct Span {
  uint32_t first = 0, end = 0;
};

/// Represents one thread of a block.
struct Thread {
  uint32_t block = 0;
  Span of[2];  ///< for launches with an even and with an odd epoch
};

struct Block {
  uint32_t rank = 0, position = 0;
  uint32_t first = 0, threads = 0;  ///< the place of its threads in Program::threads
};

/// Represents a block's queue to the proxy for one channel.
struct Queue {
  uint32_t rank = 0, block = 0, channel = 0;
};

/// Names cells that the host copies before or after a launch.
struct Copy {
  uint32_t from = 0, to = 0, cells = 0;
};

struct RankMemory {
  uint32_t input = 0, output = 0;  ///< the first cells of the application's buffers
  uint32_t input_cells = 0, output_cells = 0;
  bool one_storage = false;  ///< input and output overlap
  std::vector<Copy> before, after;
};

struct Program {
  Program(const Plan&, const AdversaryOptions&);

  Arena arena;
  Layout layout;
  std::vector<RankMemory> memory;  ///< by rank
  std::vector<Instruction> instructions;
  std::vector<Ref> refs;
  std::vector<Push> pushes;
  std::vector<Thread> threads;
  std::vector<Block> blocks;
  std::vector<uint32_t> first_block;  ///< by rank, with another entry for the end
  std::vector<Queue> queues;
  std::vector<uint64_t> semaphores;  ///< the initial values
  uint32_t signals = 0, barriers = 0;
  std::vector<uint32_t> first_signal, first_semaphore, first_barrier;  ///< by rank
  std::vector<bool> is_packet;                                         ///< by cell
  std::vector<uint32_t> rank_of;                                       ///< by cell

 private:
  void add_memory(const Plan&, const std::vector<lowering::BoundPlan>&, bool in_place);
  void add_rank(uint32_t rank, lowering::BoundPlan&, PacketForm);
};

/// Returns whether the plan accepts messages so short that every turn of its pipelines is longer than a chunk
/// or, if `all_chunks`, as long as all chunks of a pipeline. lengthen_turns() creates the same situation for
/// a message of any size.
bool takes_long_turns(const Plan&, DType, PacketForm, bool all_chunks);

/// Reduces the units of the plan's pipelines, and returns a message size with a few units per chunk.
uint64_t choose_size(Plan&, DType, PacketForm);

/// Lengthens the turns of all pipelines in proportion, so that the shortest turn is longer than a chunk of
/// the message or, if `all_chunks`, as long as all chunks of a pipeline.
void lengthen_turns(Plan&, uint64_t bytes, DType, PacketForm, bool all_chunks);

}  // namespace chorale::adversary
