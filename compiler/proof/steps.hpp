#pragma once
/// \file
/// What an operation does, as the proof sees it: which memory its threads or its rank's proxy read and
/// overwrite, and how it orders itself with others. It follows from the roles of the op table alone, and is
/// compared with what run() of executor/interpreter/semantics.hpp does by
/// tests/unit/proof/conformance_test.cpp.

#include <cstdint>
#include <utility>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale::proof {

/// Chunks [begin, end) of a buffer of a rank.
struct Access {
  uint32_t rank = 0;
  BufferKind buffer = BufferKind::input;
  bool write = false;
  bool packets = false;
  bool switched = false;  ///< one of the members that a switch operand names
  uint64_t begin = 0, end = 0;

  bool operator==(const Access&) const = default;
};

/// What is done as one.
struct Step {
  enum class Kind : uint8_t {
    sync,     ///< orders the threads of the block
    move,     ///< the threads read all sources, position by position, and overwrite all destinations
    post,     ///< adds one to the signal of a channel at its peer
    await,    ///< waits for one more post on a channel
    push,     ///< hands a move, a post behind it, or both, to the proxy
    drain,    ///< waits until the proxy has read what was pushed on a channel
    acquire,  ///< takes one from a semaphore
    release,  ///< adds one to it
    arrive,   ///< waits until all participants of a barrier have come
  };

  Kind kind = Kind::sync;
  bool relaxed = false;                        ///< post, await: orders no data
  bool posts = false;                          ///< push: with a post
  bool combines = false;                       ///< move: the sources are reduced to one
  ReduceOp reduce_op = ReduceOp::sum;          ///< of a move that combines
  ChannelType via = ChannelType::none;         ///< of the channel
  uint32_t id = 0;                             ///< the channel, semaphore or barrier, as the rank counts them
  uint32_t participants = 0;                   ///< of the barrier
  uint32_t first = 0, sources = 0, dests = 0;  ///< in Steps::accesses; all of one size

  bool operator==(const Step&) const = default;
};

/// The steps of an operation, one after the other.
struct Steps {
  std::vector<Step> steps;
  std::vector<Access> accesses;

  /// Room of list_steps(): the accesses of each operand, and the first and the number of each.
  std::vector<Access> named;
  std::vector<std::pair<uint32_t, uint32_t>> operands;

  void clear() {
    steps.clear();
    accesses.clear();
    named.clear();
    operands.clear();
  }
};

/// Replaces `out` by the steps of `op`, a valid operation. A pipeline has none: its body has.
void list_steps(const Plan&, const Gpu&, const ThreadBlock&, const Op& op, Steps& out);

}  // namespace chorale::proof
