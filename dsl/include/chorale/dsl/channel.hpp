#pragma once
/// \file
/// A channel leads from one rank to another. Over a memory channel thread blocks load and store the peer's
/// memory. Over a port channel a proxy does the transfers.

#include <cstdint>
#include <optional>
#include <vector>

#include "chorale/dsl/block.hpp"
#include "chorale/dsl/buffer.hpp"
#include "chorale/dsl/common.hpp"

namespace chorale::dsl {

/// Holds the two ends of a channel, and its number at the source.
///
/// The k-th memory channel from A to B and the k-th one from B to A are a pair: a wait on one takes the
/// signals of the other. Port channels are paired in the same way. "Here" is src_rank, which runs every
/// operation. "The peer" is dst_rank. Both are ranks of the program, and they differ. You may copy the
/// handles freely. They are valid as long as their Program.
class Channel {
 public:
  int64_t dst_rank() const { return dst_rank_; }
  int64_t src_rank() const { return src_rank_; }
  /// Returns the position among the channels of this type at src_rank, in order of creation. It is the
  /// position in "connected_to".
  int64_t channel_id() const { return id_; }

 protected:
  Channel(Program&, ChannelType, int64_t dst_rank, int64_t src_rank, Here);
  void control(Opcode, int64_t tb, SyncType, Here) const;
  void put(Opcode, Chunk dst, Chunk src, Block, Here) const;

  Recording* recording_;
  ChannelType type_;
  int64_t dst_rank_, src_rank_, id_ = 0;
  Here made_;  ///< where it is made
  bool poisoned_ = false;
};

/// Loads and stores the peer's memory. In every call, chunks must lie inside their buffers and have equal
/// sizes, and numbers of thread blocks must be 0 to 65535.
/// Source: MSCCL++ MemoryChannel(dst_rank, src_rank): the destination comes first.
class MemoryChannel : public Channel {
 public:
  MemoryChannel(Program&, int64_t dst_rank, int64_t src_rank, Here at = Here::current());

  /// Publishes everything that the block did before, then posts the peer's semaphore. `data_sync` says
  /// whether the threads of the block synchronise before it, after it, or both. With `relaxed` it publishes
  /// nothing.
  ///   {"name":"signal","channel_ids":[id],"channel_type":"memory"}   relaxed: "rlxsignal"
  void signal(int64_t tb, SyncType data_sync = SyncType::both, bool relaxed = false,
              Here at = Here::current()) const;

  /// Blocks until the peer has signalled once more. After that, the block sees everything that the peer
  /// published.
  ///   {"name":"wait","channel_ids":[id],"channel_type":"memory"}   relaxed: "rlxwait"
  void wait(int64_t tb, SyncType data_sync = SyncType::both, bool relaxed = false,
            Here at = Here::current()) const;

  /// Copies `src` here to `dst` at the peer. The peer may read it only after a later signal().
  ///   {"name":"put","src_buff":[src],"dst_buff":[dst],"channel_type":"memory"}
  void put(Chunk dst, Chunk src, Block tb, Here at = Here::current()) const;

  /// Copies `src` at the peer to `dst` here.
  ///   {"name":"get","src_buff":[src],"dst_buff":[dst],"channel_ids":[id],"channel_type":"memory"}
  void get(Chunk dst, Chunk src, Block tb, Here at = Here::current()) const;

  /// Packs `src` here into packets at `dst`, in the peer's scratch. Packets need no signal.
  ///   {"name":"ppkt","src_buff":[src],"dst_buff":[dst],"channel_type":"memory"}
  void put_packets(Chunk dst, Chunk src, Block tb, Here at = Here::current()) const;

  /// Waits for this launch's packets at `src`, in scratch here, and forwards them to `dst`, in the peer's
  /// scratch.
  ///   {"name":"rppkt","src_buff":[src],"dst_buff":[dst],"channel_type":"memory"}
  void read_put_packets(Chunk dst, Chunk src, Block tb, Here at = Here::current()) const;

  /// Reads `remote_srcs` at the peer, combines local_src with each of them in this order, and writes the
  /// result to local_dst. All local chunks are here. If you leave out local_dst, it is local_src.
  ///   {"name":"rre","src_buff":[local_src,remote_srcs...],"dst_buff":[local_dst],
  ///    "channel_type":"memory","reduce_op":"sum"}
  ///
  /// `remote_srcs` must not be empty. ReduceOp::avg is refused, as in Rank::reduce().
  void reduce(Chunk local_src, const std::vector<Chunk>& remote_srcs, Block tb,
              std::optional<Chunk> local_dst = std::nullopt, ReduceOp reduce_op = ReduceOp::sum,
              Here at = Here::current()) const;

 protected:
  /// Makes a channel of another type whose data is moved by threads.
  MemoryChannel(Program&, ChannelType, int64_t dst_rank, int64_t src_rank, Here);
};

/// Hands transfers to a proxy, which may use a network. All else is as with MemoryChannel.
/// Source: MSCCL++ PortChannel(dst_rank, src_rank).
class PortChannel : public Channel {
 public:
  PortChannel(Program&, int64_t dst_rank, int64_t src_rank, Here at = Here::current());

  /// Posts the peer's semaphore after all transfers that were pushed before.
  ///   {"name":"signal","channel_ids":[id],"channel_type":"port"}
  void signal(int64_t tb, SyncType data_sync = SyncType::both, Here at = Here::current()) const;

  /// Blocks until the peer has signalled once more. After that, the block sees everything that the peer
  /// published.
  ///   {"name":"wait","channel_ids":[id],"channel_type":"port"}
  void wait(int64_t tb, SyncType data_sync = SyncType::both, Here at = Here::current()) const;

  /// Blocks until the sources of all transfers pushed so far have been read. Only a signal makes the data
  /// visible to the peer.
  ///   {"name":"flush","channel_ids":[id],"channel_type":"port"}
  void flush(int64_t tb, SyncType data_sync = SyncType::both, Here at = Here::current()) const;

  /// Pushes a transfer of `src` here to `dst` at the peer. You may overwrite `src` only after flush().
  ///   {"name":"put","src_buff":[src],"dst_buff":[dst],"channel_ids":[id],"channel_type":"port"}
  void put(Chunk dst, Chunk src, int64_t tb, Here at = Here::current()) const;

  /// Does put(), then signals after the data: "pws".
  void put_with_signal(Chunk dst, Chunk src, int64_t tb, Here at = Here::current()) const;

  /// Does put_with_signal(), then flush(): "pwsf".
  void put_with_signal_and_flush(Chunk dst, Chunk src, int64_t tb, Here at = Here::current()) const;

  /// Does what MemoryChannel::put_packets() does, with "channel_ids".
  void put_packets(Chunk dst, Chunk src, int64_t tb, Here at = Here::current()) const;

  /// Does what MemoryChannel::read_put_packets() does, with "channel_ids".
  void read_put_packets(Chunk dst, Chunk src, Block tb, Here at = Here::current()) const;

 protected:
  /// Makes a channel of another type whose data is moved by a proxy.
  PortChannel(Program&, ChannelType, int64_t dst_rank, int64_t src_rank, Here);
};

}  // namespace chorale::dsl
