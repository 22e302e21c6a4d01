#pragma once
/// \file
/// The proofs see an operation as steps. They say which memory its threads or its rank's proxy read and
/// write, and how the operation is ordered with others. All of this follows from the roles of the op table.
/// tests/unit/proof/conformance_test.cpp compares it with run() in executor/lowering/semantics.hpp.

#include <cstdint>
#include <utility>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale::proof {

/// Names chunks [begin, end) of a buffer of a rank.
struct Access {
  uint32_t rank = 0;
  BufferKind buffer = BufferKind::input;
  bool write = false;
  bool packets = false;
  bool switched = false;  ///< one of the members that a switch operand names
  uint64_t begin = 0, end = 0;
  uint8_t codec = 0;  ///< as Operand::codec

  bool operator==(const Access&) const = default;
};

/// Describes one part of an operation, which the proofs treat as a unit.
struct SymbolicStep {
  enum class Kind : uint8_t {
    sync,     ///< orders the threads of the block
    move,     ///< the threads read all sources, position by position, and write all destinations
    post,     ///< adds one to the signal of a channel at its peer
    await,    ///< waits for one more post on a channel
    push,     ///< hands a move, a post, or both to the proxy; the post comes after the move
    drain,    ///< waits until the proxy has read what was pushed on a channel
    acquire,  ///< takes one from a semaphore
    release,  ///< adds one to a semaphore
    arrive,   ///< waits until all participants of a barrier have arrived
  };

  Kind kind = Kind::sync;
  bool relaxed = false;                        ///< post, await: orders no data
  bool posts = false;                          ///< push: includes a post
  bool combines = false;                       ///< move: the sources are reduced to one
  ReduceOp reduce_op = ReduceOp::sum;          ///< of a move that combines
  ChannelType via = ChannelType::none;         ///< of the channel
  uint32_t id = 0;                             ///< channel, semaphore or barrier, numbered within the rank
  uint32_t position = 0;                       ///< the position of the id among those of the operation
  uint32_t participants = 0;                   ///< of the barrier
  uint32_t first = 0, sources = 0, dests = 0;  ///< in SymbolicSteps::accesses; all of the same size

  bool operator==(const SymbolicStep&) const = default;
};

/// Holds the steps of an operation, in order.
struct SymbolicSteps {
  std::vector<SymbolicStep> steps;
  std::vector<Access> accesses;

  /// Serves list_steps() as scratch space: the accesses of each operand, and per operand the first access and
  /// their number.
  std::vector<Access> named;
  std::vector<std::pair<uint32_t, uint32_t>> operands;

  void clear() {
    steps.clear();
    accesses.clear();
    named.clear();
    operands.clear();
  }
};

/// Replaces `out` by the steps of `op`, which must be valid. A pipeline has no steps, but the operations of
/// its body have.
void list_steps(const Plan&, const Gpu&, const ThreadBlock&, const Op& op, SymbolicSteps& out);

}  // namespace chorale::proof
