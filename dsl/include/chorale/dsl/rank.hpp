#pragma once
/// \file
/// A rank has operations on its own memory and for its own thread blocks.

#include <cstdint>
#include <optional>
#include <vector>

#include "chorale/dsl/block.hpp"
#include "chorale/dsl/buffer.hpp"
#include "chorale/dsl/common.hpp"

namespace chorale::dsl {

/// Names one rank of a program. You may copy the handle freely; it is valid as long as its Program is.
///
/// In every call chunks are on this rank and inside their buffers, and thread blocks are 0 to 65535.
/// Source: MSCCL++ rank.py.
class Rank {
 public:
  /// `rank` is 0 to the program's number of ranks - 1. Program::rank() is the same.
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

  /// Combines src with every one of `others`, in this order, into dst. If you leave out dst, it is src.
  ///   {"name":"re","src_buff":[src,others...],"dst_buff":[dst],"reduce_op":"sum"}
  ///
  /// With `packet` the others are packets in scratch, which the operation waits for: "repkt". All chunks have
  /// one size and `others` is not empty. ReduceOp::avg is refused: the average is a sum that the run divides,
  /// which you choose when you execute the plan.
  void reduce(Chunk src, const std::vector<Chunk>& others, Block tb, std::optional<Chunk> dst = std::nullopt,
              ReduceOp reduce_op = ReduceOp::sum, bool packet = false, Here at = Here::current()) const;

  /// Combines every one of `packets`, in this order, into dst. They are packets in scratch, which the
  /// operation waits for.
  ///   {"name":"chorale_combine_packets","src_buff":[packets...],"dst_buff":[dst],"reduce_op":"sum"}
  ///
  /// It does what reduce() with `packet` does, but no part comes from plain memory, so that every rank can
  /// combine in one order. All chunks have one size and `packets` is not empty; avg is refused as in
  /// reduce(). MSCCL++ has no such operation and refuses the plan.
  void combine_packets(Chunk dst, const std::vector<Chunk>& packets, Block tb,
                       ReduceOp reduce_op = ReduceOp::sum, Here at = Here::current()) const;

  /// Makes the listed thread blocks wait for each other.
  ///   {"name":"barrier","barrier_id":0,"num_threadblocks":2}   in each of two
  ///   {"name":"nop"}                                           in one
  ///
  /// Lists of the same blocks in the same order share a barrier_id. A list is not empty and names no block
  /// twice.
  void barrier(const NumberList& tb_list, Here at = Here::current()) const;

 private:
  void transfer(Opcode, Chunk dst, Chunk src, Block, Here) const;

  Recording* recording_;
  int64_t rank_;
  bool poisoned_;
};

/// Counts on one rank to order its thread blocks: release adds one, acquire takes one and blocks while there
/// is none. The value outlives a launch.
///
/// It becomes an entry {"init_value":n} of the rank's "semaphores", numbered in order of creation;
/// `initial_value` is 0 to 2^31 - 1.
/// Source: MSCCL++ Semaphore(rank, initial_value).
class Semaphore {
 public:
  Semaphore(Program&, int64_t rank, int64_t initial_value, Here at = Here::current());

  /// Takes one, and blocks while there is none. `data_sync` says where the threads of the block are
  /// synchronised around it.
  ///   {"name":"sem_acquire","semaphore_ids":[id]}
  void acquire(int64_t tb, SyncType data_sync = SyncType::both, Here at = Here::current()) const;
  /// Adds one, and publishes what the block did before.
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
