#pragma once
/// \file
/// Channels lead from one rank to another. Memory channels load and store the peer's memory, port channels
/// hand transfers to a proxy.

#include <cstdint>
#include <optional>
#include <vector>

#include "chorale/dsl/block.hpp"
#include "chorale/dsl/buffer.hpp"
#include "chorale/dsl/common.hpp"

namespace chorale::dsl {

/// Holds the two ends of a channel of either kind, and its number at the source.
///
/// The k-th channel of a kind from A to B and the k-th from B to A are one pair: a signal
/// on one is awaited on the other. "Here" is src_rank, which runs every operation;
/// "the peer" is dst_rank. Both are ranks of the program, and not the same one.
/// You may copy the handles freely. They are valid as long as their Program is.
class Channel {
 public:
  int64_t dst_rank() const { return dst_rank_; }
  int64_t src_rank() const { return src_rank_; }
  /// Returns the position among the channels of this kind at src_rank, in order of creation. That is the
  /// entry of "connected_to".
  int64_t channel_id() const { return id_; }

 protected:
  Channel(Program&, ChannelType, int64_t dst_rank, int64_t src_rank, Here);
  void control(Opcode, int64_t tb, SyncType, Here) const;
  void put(Opcode, Chunk dst, Chunk src, Block, Here) const;

  Recording* recording_;
  ChannelType type_;
  int64_t dst_rank_, src_rank_, id_ = 0;
  bool poisoned_ = false;
};

/// Loads and stores in the peer's memory. In every call chunks lie inside their buffers and have equal sizes,
/// and thread blocks are 0 to 65535.
/// Source: MSCCL++ MemoryChannel(dst_rank, src_rank): the destination comes first.
class MemoryChannel : public Channel {
 public:
  MemoryChannel(Program&, int64_t dst_rank, int64_t src_rank, Here at = Here::current());

  /// Publishes what the block did before and posts the peer's semaphore. `data_sync` says where
  /// the threads of the block are synchronised around it; `relaxed` publishes nothing.
  ///   {"name":"signal","channel_ids":[id],"channel_type":"memory"}   relaxed: "rlxsignal"
  void signal(int64_t tb, SyncType data_sync = SyncType::both, bool relaxed = false,
              Here at = Here::current()) const;

  /// Blocks until the peer has signalled once more, then sees what it published.
  ///   {"name":"wait","channel_ids":[id],"channel_type":"memory"}   relaxed: "rlxwait"
  void wait(int64_t tb, SyncType data_sync = SyncType::both, bool relaxed = false,
            Here at = Here::current()) const;

  /// Copies `src` here to `dst` at the peer, which may see it only after a later signal().
  ///   {"name":"put","src_buff":[src],"dst_buff":[dst],"channel_type":"memory"}
  void put(Chunk dst, Chunk src, Block tb, Here at = Here::current()) const;

  /// Copies `src` at the peer to `dst` here.
  ///   {"name":"get","src_buff":[src],"dst_buff":[dst],"channel_ids":[id],"channel_type":"memory"}
  void get(Chunk dst, Chunk src, Block tb, Here at = Here::current()) const;

  /// Packs `src` here into packets at `dst`, in the peer's scratch; they need no signal.
  ///   {"name":"ppkt","src_buff":[src],"dst_buff":[dst],"channel_type":"memory"}
  void put_packets(Chunk dst, Chunk src, Block tb, Here at = Here::current()) const;

  /// Waits for this launch's packets at `src`, in scratch here, and forwards them to `dst`, in
  /// the peer's scratch.
  ///   {"name":"rppkt","src_buff":[src],"dst_buff":[dst],"channel_type":"memory"}
  void read_put_packets(Chunk dst, Chunk src, Block tb, Here at = Here::current()) const;

  /// Combines local_src with every one of `remote_srcs`, read at the peer, in this order, into local_dst. If
  /// you leave out local_dst, it is local_src; it is here too.
  ///   {"name":"rre","src_buff":[local_src,remote_srcs...],"dst_buff":[local_dst],
  ///    "channel_type":"memory","reduce_op":"sum"}
  ///
  /// `remote_srcs` is not empty; ReduceOp::avg is refused as in Rank::reduce().
  void reduce(Chunk local_src, const std::vector<Chunk>& remote_srcs, Block tb,
              std::optional<Chunk> local_dst = std::nullopt, ReduceOp reduce_op = ReduceOp::sum,
              Here at = Here::current()) const;
};

/// Hands transfers to a proxy, which may use a network. Otherwise it is as MemoryChannel.
/// Source: MSCCL++ PortChannel(dst_rank, src_rank).
class PortChannel : public Channel {
 public:
  PortChannel(Program&, int64_t dst_rank, int64_t src_rank, Here at = Here::current());

  /// Posts the peer's semaphore after the transfers pushed before.
  ///   {"name":"signal","channel_ids":[id],"channel_type":"port"}
  void signal(int64_t tb, SyncType data_sync = SyncType::both, Here at = Here::current()) const;

  /// Blocks until the peer has signalled once more, then sees what it published.
  ///   {"name":"wait","channel_ids":[id],"channel_type":"port"}
  void wait(int64_t tb, SyncType data_sync = SyncType::both, Here at = Here::current()) const;

  /// Blocks until every transfer pushed so far has read its source. Only a signal shows the peer the data.
  ///   {"name":"flush","channel_ids":[id],"channel_type":"port"}
  void flush(int64_t tb, SyncType data_sync = SyncType::both, Here at = Here::current()) const;

  /// Pushes the transfer of `src` here to `dst` at the peer; `src` may be written again after flush().
  ///   {"name":"put","src_buff":[src],"dst_buff":[dst],"channel_ids":[id],"channel_type":"port"}
  void put(Chunk dst, Chunk src, int64_t tb, Here at = Here::current()) const;

  /// Does put(), then signals after its data: "pws".
  void put_with_signal(Chunk dst, Chunk src, int64_t tb, Here at = Here::current()) const;

  /// Does put_with_signal(), then flush(): "pwsf".
  void put_with_signal_and_flush(Chunk dst, Chunk src, int64_t tb, Here at = Here::current()) const;

  /// Does what MemoryChannel::put_packets() does, with "channel_ids".
  void put_packets(Chunk dst, Chunk src, int64_t tb, Here at = Here::current()) const;

  /// Does what MemoryChannel::read_put_packets() does, with "channel_ids".
  void read_put_packets(Chunk dst, Chunk src, Block tb, Here at = Here::current()) const;
};

}  // namespace chorale::dsl
