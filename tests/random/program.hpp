#pragma once
/// \file
/// Represents a small program of a few ranks that is easy to change. Every thread block may use everything,
/// and each pair of blocks has channels and semaphores of its own.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale::random {

/// Holds an operation with its lists.
struct Item {
  Op op;
  std::vector<Operand> sources, dests;
  std::vector<uint32_t> ids;
};
using Block = std::vector<Item>;

struct Program {
  uint32_t ranks = 2, blocks = 1;  ///< the number of blocks of each rank
  uint64_t chunks[3] = {2, 2, 2};  ///< of each rank, by BufferKind
  bool double_scratch = false, bounded = false;
  std::vector<std::vector<Block>> of;            ///< by rank
  std::vector<std::vector<int64_t>> semaphores;  ///< by rank

  Program() = default;
  Program(uint32_t ranks, uint32_t blocks);

  size_t size() const;

  /// Returns the channel of a rank over which its block `from` posts to block `to` of a peer, or on which it
  /// waits for that block's post. At the peer it is channel(peer, rank, from, to).
  uint32_t channel(uint32_t rank, uint32_t peer, uint32_t from, uint32_t to) const;
  uint32_t semaphore(uint32_t from, uint32_t to) const { return from * blocks + to; }
  /// Returns a buffer of a peer, in the form in which operands name it.
  uint32_t remote(uint32_t rank, uint32_t peer, BufferKind) const;
  uint32_t peer_of_channel(uint32_t rank, uint32_t channel) const;

  Plan plan() const;
};

/// Returns the pipeline around a position of a block; null: none.
const Item* loop_around(const Block&, size_t position);
/// Inserts an operation. An operation in the body of a pipeline makes the body longer. A pipeline cannot be
/// inserted there.
void insert(Block&, size_t position, Item);
/// Erases an operation. The last operation of a pipeline's body takes the pipeline with it. Erasing a
/// pipeline leaves its body there.
void erase(Block&, size_t position);

bool posts(const Item&);
bool awaits(const Item&);

}  // namespace chorale::random
