#pragma once
/// \file
/// A Rank records operations on its own memory. A Semaphore orders the thread blocks of one rank.

#include <cstdint>
#include <optional>
#include <vector>

#include "chorale/dsl/block.hpp"
#include "chorale/dsl/buffer.hpp"
#include "chorale/dsl/common.hpp"

namespace chorale::dsl {

/// Names one rank of a program. You may copy the handle freely. It is valid as long as its Program.
///
/// In every call, chunks must be on this rank and inside their buffers, and numbers of thread blocks must be
/// 0 to 65535.
/// Source: MSCCL++ rank.py.
class Rank {
 public:
  /// Names rank `rank`, which is 0 to the program's number of ranks - 1. Program::rank() does the same.
  Rank(Program&, int64_t rank, Here at = Here::current());

  int64_t rank() const { return rank_; }

  BaseBuffer get_input_buffer() const;
  BaseBuffer get_output_buffer() const;

  /// Copies `src` to `dst`. Both have the same number of chunks.
  ///   {"name":"copy","src_buff":[src],"dst_buff":[dst]}
  void copy(Chunk dst, Chunk src, Block tb, Here at = Here::current()) const;

  /// Packs `src` into packets at `dst`, which is in scratch.
  ///   {"name":"cpkt","src_buff":[src],"dst_buff":[dst]}
  void copy_packets(Chunk dst, Chunk src, Block tb, Here at = Here::current()) const;

  /// Waits for this launch's packets at `src`, which is in scratch, and unpacks them to `dst`.
  ///   {"name":"upkt","src_buff":[src],"dst_buff":[dst]}
  void unpack_packets(Chunk dst, Chunk src, Block tb, Here at = Here::current()) const;

  /// Combines src with each of `others`, in this order, and writes the result to dst. If you leave out dst,
  /// it is src.
  ///   {"name":"re","src_buff":[src,others...],"dst_buff":[dst],"reduce_op":"sum"}
  ///
  /// With `packet` the others are packets in scratch, and the operation waits for them: "repkt". All chunks
  /// must have one size, and `others` must not be empty. ReduceOp::avg is refused. To get an average, record
  /// a sum and choose avg when you execute the plan, which then divides.
  void reduce(Chunk src, const std::vector<Chunk>& others, Block tb, std::optional<Chunk> dst = std::nullopt,
              ReduceOp reduce_op = ReduceOp::sum, bool packet = false, Here at = Here::current()) const;

  /// Combines all `packets`, in this order, and writes the result to dst. They are packets in scratch, and
  /// the operation waits for them.
  ///   {"name":"chorale_combine_packets","src_buff":[packets...],"dst_buff":[dst],"reduce_op":"sum"}
  ///
  /// Unlike reduce() with `packet`, it takes no part from plain memory, so that every rank can combine in the
  /// same order. All chunks must have one size, and `packets` must not be empty. ReduceOp::avg is refused, as
  /// in reduce(). MSCCL++ lacks this operation and refuses the plan.
  void combine_packets(Chunk dst, const std::vector<Chunk>& packets, Block tb,
                       ReduceOp reduce_op = ReduceOp::sum, Here at = Here::current()) const;

  /// Makes the listed thread blocks wait for each other.
  ///   {"name":"barrier","barrier_id":0,"num_threadblocks":2}   in each of two
  ///   {"name":"nop"}                                           in one
  ///
  /// Lists of the same blocks in the same order share a barrier_id. A list must not be empty and must name no
  /// block twice.
  void barrier(const NumberList& tb_list, Here at = Here::current()) const;

 private:
  void transfer(Opcode, Chunk dst, Chunk src, Block, Here) const;

  Recording* recording_;
  int64_t rank_;
  Here made_;  ///< where it is made
  bool poisoned_;
};

/// Orders the thread blocks of one rank by a counter. release() adds one. acquire() takes one, and blocks
/// while the counter is zero. The counter keeps its value from launch to launch.
///
/// It becomes an entry {"init_value":n} of the rank's "semaphores", which are numbered in order of creation.
/// `initial_value` is 0 to 2^31 - 1.
/// Source: MSCCL++ Semaphore(rank, initial_value).
class Semaphore {
 public:
  Semaphore(Program&, int64_t rank, int64_t initial_value, Here at = Here::current());

  /// Takes one, and blocks while the counter is zero. `data_sync` says whether the threads of the block
  /// synchronise before it, after it, or both.
  ///   {"name":"sem_acquire","semaphore_ids":[id]}
  void acquire(int64_t tb, SyncType data_sync = SyncType::both, Here at = Here::current()) const;
  /// Publishes everything that the block did before, then adds one.
  ///   {"name":"sem_release","semaphore_ids":[id]}
  void release(int64_t tb, SyncType data_sync = SyncType::both, Here at = Here::current()) const;

  int64_t rank() const { return rank_; }
  int64_t id() const { return id_; }  ///< number among the semaphores of the rank

 private:
  void record(Opcode, int64_t tb, SyncType, Here) const;

  Recording* recording_;
  int64_t rank_, id_ = 0;
  bool poisoned_ = false;
};

}  // namespace chorale::dsl
