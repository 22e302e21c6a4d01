#pragma once
/// \file
/// A switch channel reads or writes one buffer on every rank of a group in a single operation.

#include <cstdint>
#include <vector>

#include "chorale/dsl/buffer.hpp"
#include "chorale/dsl/common.hpp"

namespace chorale::dsl {

class Call;         // private to dsl/
struct Region;      // private to dsl/
struct RecordedOp;  // private to dsl/

/// Joins one buffer of each rank of a group over a switch.
///
/// Each member gets a record
///   {"channel_type":"switch","buffer_type":"i","rank_groups":[{"size":2,"ranks":[0,1]}]}
/// `rank_list` must name ranks of the program, each once, and must not be empty.
/// In every call, `rank` is the member that runs the operation, and the chunk is on that rank and has `size`
/// chunks. The region [buffer_offset, buffer_offset + size) must lie inside the buffer of every member. For
/// scratch, only what is allocated before the call counts.
/// Source: MSCCL++ SwitchChannel(rank_list, buffer_type).
class SwitchChannel {
 public:
  class RankView;

  SwitchChannel(Program&, const NumberList& rank_list, BufferKind buffer_type, Here at = Here::current());

  /// Returns a view that makes the calls below for the member `rank`, which is in rank_list.
  RankView at_rank(int64_t rank, Here at = Here::current()) const;

  /// Combines the region of every member, in rank order, and writes the result to dst. ReduceOp::avg is
  /// refused, as in Rank::reduce().
  ///   {"name":"glre","src_buff":[{"switch_channel_id":0,"index":0,"size":1}],"dst_buff":[dst],
  ///    "channel_type":"switch","reduce_op":"sum"}
  void reduce(int64_t rank, int64_t buffer_offset, int64_t size, Chunk dst, int64_t tb,
              ReduceOp reduce_op = ReduceOp::sum, Here at = Here::current()) const;

  /// Stores `src` to the region of every member.
  ///   {"name":"gstore","src_buff":[src],"dst_buff":[{"switch_channel_id":0,"index":0,"size":1}],
  ///    "channel_type":"switch"}
  void broadcast(int64_t rank, Chunk src, int64_t buffer_offset, int64_t size, int64_t tb,
                 Here at = Here::current()) const;

  /// Waits for this launch's packets at `src`, in scratch, and stores them to the region of every member:
  /// "gstorepkt". The channel's buffer must be scratch, too.
  void broadcast_packets(int64_t rank, Chunk src, int64_t buffer_offset, int64_t size, int64_t tb,
                         Here at = Here::current()) const;

  const std::vector<int64_t>& rank_list() const { return ranks_; }
  BufferKind buffer_type() const { return buffer_; }

 private:
  bool accepts(Call&, const char* chunk_name, int64_t rank, int64_t offset, int64_t size, const Chunk&) const;
  Region region(int64_t offset, int64_t size) const;
  void record(Call&, RecordedOp, int64_t rank, int64_t tb) const;

  Recording* recording_;
  std::vector<int64_t> ranks_, ids_;  // ids_[k]: number of this channel at ranks_[k]
  BufferKind buffer_;
  Here made_;  ///< where it is made
  bool poisoned_ = false;
};

/// Makes the calls of a switch channel for one member.
/// Source: MSCCL++ SwitchChannelRankView.
class SwitchChannel::RankView {
 public:
  void reduce(int64_t buffer_offset, int64_t size, Chunk dst, int64_t tb, ReduceOp reduce_op = ReduceOp::sum,
              Here at = Here::current()) const {
    if (!poisoned_) channel_.reduce(rank_, buffer_offset, size, dst, tb, reduce_op, at);
  }
  void broadcast(Chunk src, int64_t buffer_offset, int64_t size, int64_t tb,
                 Here at = Here::current()) const {
    if (!poisoned_) channel_.broadcast(rank_, src, buffer_offset, size, tb, at);
  }
  void broadcast_packets(Chunk src, int64_t buffer_offset, int64_t size, int64_t tb,
                         Here at = Here::current()) const {
    if (!poisoned_) channel_.broadcast_packets(rank_, src, buffer_offset, size, tb, at);
  }

 private:
  friend class SwitchChannel;
  RankView(const SwitchChannel& channel, int64_t rank, bool poisoned)
      : channel_(channel), rank_(rank), poisoned_(poisoned) {}
  SwitchChannel channel_;
  int64_t rank_;
  bool poisoned_;
};

}  // namespace chorale::dsl
