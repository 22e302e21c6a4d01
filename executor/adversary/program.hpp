#pragma once
/// \file
/// Lists what the threads of all ranks do, as flat lists. They are made once for a plan and a message, and
/// run by many schedules.

#include <cstdint>
#include <vector>

#include "../lowering/bind.hpp"
#include "arena.hpp"
#include "chorale/adversary.hpp"

namespace chorale::adversary {

enum class Code : uint8_t {
  sync,     ///< meets the block's other threads
  move,     ///< loads all sources, combines them and stores to all destinations: one cell
  post,     ///< `id` is a signal; relaxed or not
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
  uint32_t participants = 0;
  uint32_t first = 0;   ///< of a move: in Program::refs, sources before destinations
  uint32_t id = 0;      ///< `none` for a post that nobody can wait for
  uint32_t record = 0;  ///< the operation, as the plan's thread block counts them
};
inline constexpr uint32_t none = ~uint32_t{0};

/// A transfer for a proxy: a copy cell by cell, then a post.
struct Push {
  uint32_t queue = 0;
  uint32_t first = 0, cells = 0;  ///< in Program::refs: a source and a destination each
  bool posts = false;
  uint32_t signal = none;
};

/// The instructions [first, end) that one thread runs in a launch.
struct Span {
  uint32_t first = 0, end = 0;
};

struct Lane {
  uint32_t block = 0;
  Span of[2];  ///< in launches with an even and an odd epoch
};

struct Block {
  uint32_t rank = 0, position = 0;
  uint32_t first = 0, lanes = 0;  ///< in Program::lanes
};

/// A block's queue to the proxy for one channel.
struct Queue {
  uint32_t rank = 0, block = 0, channel = 0;
};

/// Cells that whoever launches copies before or after a launch.
struct Copy {
  uint32_t from = 0, to = 0, cells = 0;
};

struct RankMemory {
  uint32_t input = 0, output = 0;  ///< first cells of the buffers that the application passes
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
  std::vector<Lane> lanes;
  std::vector<Block> blocks;
  std::vector<uint32_t> first_block;  ///< by rank, with one more entry for the end
  std::vector<Queue> queues;
  std::vector<uint64_t> semaphores;  ///< initial values
  uint32_t signals = 0, barriers = 0;
  std::vector<uint32_t> first_signal, first_semaphore, first_barrier;  ///< by rank
  std::vector<bool> is_packet;                                         ///< by cell
  std::vector<uint32_t> rank_of;                                       ///< by cell

 private:
  void add_memory(const Plan&, const std::vector<lowering::BoundPlan>&, bool in_place);
  void add_rank(uint32_t rank, lowering::BoundPlan&, PacketForm);
};

/// Returns whether the plan takes messages so short that every turn of its pipelines is longer than a chunk,
/// or, if `all_chunks`, as long as all chunks of a pipeline. lengthen_turns() creates the same situation for
/// a message that was chosen.
bool takes_long_turns(const Plan&, DType, PacketForm, bool all_chunks);

/// Makes the pipelines of the plan small, and returns a message size with a few units in each chunk.
uint64_t choose_size(Plan&, DType, PacketForm);

/// Makes the turns of all pipelines longer, in proportion. The shortest is then longer than a chunk of the
/// message or, if `all_chunks`, as long as all chunks of a pipeline.
void lengthen_turns(Plan&, uint64_t bytes, DType, PacketForm, bool all_chunks);

}  // namespace chorale::adversary
