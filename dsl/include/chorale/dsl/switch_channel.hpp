#pragma once
/// \file
/// A switch channel reads or writes the buffers of a group of ranks all at once.

#include <cstdint>
#include <vector>

#include "chorale/dsl/buffer.hpp"
#include "chorale/dsl/common.hpp"

namespace chorale::dsl {

class Call;     // private to dsl/
struct Region;  // private to dsl/
struct Step;    // private to dsl/

/// Joins one buffer of each rank of a group by a switch.
///
/// It becomes in every member a record
///   {"channel_type":"switch","buffer_type":"i","rank_groups":[{"size":2,"ranks":[0,1]}]}
/// `rank_list` names ranks of the program, none of them twice, and is not empty.
/// In every call `rank` is the member that runs it and owns the chunk. The region [buffer_offset,
/// buffer_offset + size) lies inside the buffer of every member (scratch: what is allocated by then), and the
/// chunk has `size` chunks.
/// Source: MSCCL++ SwitchChannel(rank_list, buffer_type).
class SwitchChannel {
 public:
  class RankView;

  SwitchChannel(Program&, const NumberList& rank_list, BufferKind buffer_type, Here at = Here::current());

  /// Returns the calls below for one member; `rank` is in rank_list.
  RankView at_rank(int64_t rank, Here at = Here::current()) const;

  /// Combines the region of every member, in rank order, into dst. Refuses ReduceOp::avg, as Rank::reduce()
  /// does.
  ///   {"name":"glre","src_buff":[{"switch_channel_id":0,"index":0,"size":1}],"dst_buff":[dst],
  ///    "channel_type":"switch","reduce_op":"sum"}
  void reduce(int64_t rank, int64_t buffer_offset, int64_t size, Chunk dst, int64_t tb,
              ReduceOp reduce_op = ReduceOp::sum, Here at = Here::current()) const;

  /// Stores `src` to the region of every member.
  ///   {"name":"gstore","src_buff":[src],"dst_buff":[{"switch_channel_id":0,"index":0,"size":1}],
  ///    "channel_type":"switch"}
  void broadcast(int64_t rank, Chunk src, int64_t buffer_offset, int64_t size, int64_t tb,
                 Here at = Here::current()) const;

  /// Waits for this launch's packets at `src`, in scratch, and stores them to the region of every
  /// member; the buffer of the channel is scratch as well: "gstorepkt".
  void broadcast_packets(int64_t rank, Chunk src, int64_t buffer_offset, int64_t size, int64_t tb,
                         Here at = Here::current()) const;

  const std::vector<int64_t>& rank_list() const { return ranks_; }
  BufferKind buffer_type() const { return buffer_; }

 private:
  bool accepts(Call&, const char* chunk_name, int64_t rank, int64_t offset, int64_t size, const Chunk&) const;
  Region region(int64_t offset, int64_t size) const;
  void record(Call&, Step, int64_t rank, int64_t tb) const;

  Recording* recording_;
  std::vector<int64_t> ranks_, ids_;  // ids_[k]: number of this channel at ranks_[k]
  BufferKind buffer_;
  bool poisoned_ = false;
};

/// Shows a switch channel from one member.
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
