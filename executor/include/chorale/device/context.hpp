#pragma once
// These types tell a hook about the data that it makes or takes.

#include <cstdint>

#include "chorale/device/divide.hpp"
#include "chorale/device/macros.hpp"
#include "chorale/device/vec.hpp"

namespace chorale {

/// Stands for the extra data of a kernel that has none.
struct None {};

/// Gives the strides of a matrix in a user's buffer, in elements.
struct Strides {
  uint64_t row = 0, col = 0;
};

/// Returns `strides`. If none are given, returns those of `cols`-element rows that follow each other.
CHORALE_HD Strides strides_or_dense(const Strides& strides, uint64_t cols) {
  return strides.row == 0 && strides.col == 0 ? Strides{cols, 1} : strides;
}

/// Tells a hook for which part of the message it is called. If hooks need to know more, this struct gets more
/// members, so the signature of hooks does not change.
///
/// `index`, `first`, `pos`, `count` and `cols` count elements. For a value hook an element is one T, whatever
/// Leg::elem is. For a block hook an element has Leg::elem bytes.
template <class X = None>
struct Ctx {
  const void* in = nullptr;  ///< Leg::in, which points to the message's first element
  void* out = nullptr;       ///< Leg::out, which points to the place of the message's first element
  /// Points to the tile in the ring's slot, which may be in the peer's memory (see RingAt). A producer may
  /// write it. It is null when the message goes as packets.
  char* region = nullptr;
  uint64_t slot_base = 0;  ///< the tile's position in the stream, in bytes

  uint64_t tile = 0;                      ///< the tile's number in this group's share, from 0
  uint32_t slot = 0;                      ///< the tile's slot of the ring
  uint64_t step = 0;                      ///< the tile's number among all that the link has carried
  uint64_t tile_bytes = 0;                ///< bytes of a full tile
  uint32_t tile_rows = 0, tile_cols = 0;  ///< rows and columns of a full tile, if the Leg has `cols`

  uint32_t block = 0, thread = 0;    ///< number of this group in the kernel, and of this thread in the group
  uint32_t blocks = 1, threads = 1;  ///< how many groups the kernel has, and how many threads this group has

  int32_t self = -1;                  ///< this rank
  int32_t peer = -1, recv_peer = -1;  ///< the ranks that producers send to and consumers receive from
  int32_t ranks = 0;
  uint32_t shard = 0;  ///< Leg::shard

  uint32_t rows = 0, cols = 0;  ///< Leg::rows and Leg::cols
  Strides in_strides, out_strides;

  uint64_t index = 0;  ///< the index in the message of the first element of this vector or tile
  uint64_t first = 0;  ///< all_to_all_v(): the index in `in` or `out` of the shard's first element
  uint64_t pos = 0;    ///< like `index`, but counted from the start of the tile
  uint32_t count = 0;  ///< the number of valid elements in this vector or, for a block hook, in the tile

  X* extra = nullptr;  ///< the last argument of the call, for data of the kernel
};

/// Describes one side of a transfer for one group: its share of a message. Sizes are in bytes as they travel.
struct Leg {
  const void* in = nullptr;   ///< the message to send, for producers; null if they need none
  void* out = nullptr;        ///< where the received message goes, for consumers; null: copies drop the data
  uint64_t bytes = 0;         ///< size of the share, a whole number of elements
  uint64_t begin = 0;         ///< offset of the share in the message
  uint64_t tile_bytes = 0;    ///< size of a tile, at most a slot; 0: a slot. The same on both sides
  uint64_t signal_bytes = 0;  ///< the sender signals, or the receiver waits, after each so many bytes of a
                              ///< tile; 0: once per tile. The sides may differ
  /// Gives the size of an element in bytes. Tiles and shares consist of whole elements. The size is a
  /// multiple of sizeof(T) of the call; 1 means sizeof(T).
  uint32_t elem = 1;
  uint32_t shard = 0;  ///< the number of the shard, for hooks
  // Only hooks use the members below: the shape of the message as a matrix, and its strides in the buffers.
  uint32_t rows = 0, cols = 0;
  Strides in_strides, out_strides;
};

/// Gives a block hook the region of a tile to fill, 16-byte aligned.
struct TileOut {
  char* data;
  uint64_t bytes;
};

/// Gives a block hook the data of a tile to take.
struct TileIn {
  const char* data;
  uint64_t bytes;
};

namespace detail {
CHORALE_HD uint64_t units_in(uint64_t bytes, uint64_t unit) {
  return quotient(bytes, unit) + (modulo(bytes, unit) != 0 ? 1 : 0);
}

/// Returns `n` units of a message from unit `first` on, or as many of them as the message has. A unit is
/// `unit` bytes.
CHORALE_HD Leg part_of(const Leg& message, uint64_t unit, uint64_t first, uint64_t n) {
  const uint64_t begin = first * unit, end = begin + n * unit;
  Leg part = message;
  part.begin = message.begin + (begin < message.bytes ? begin : message.bytes);
  part.bytes = (end < message.bytes ? end : message.bytes) - (part.begin - message.begin);
  return part;
}
}  // namespace detail

/// Returns the part of a message that group `id` of `count` moves. Parts are whole multiples of `unit` bytes
/// and as even as possible. The last part ends where the message ends.
CHORALE_HD Leg share_of(const Leg& message, uint32_t id, uint32_t count, uint64_t unit) {
  const detail::EvenParts parts(detail::units_in(message.bytes, unit), count);
  return detail::part_of(message, unit, parts.first(id), parts.size(id));
}

/// Returns the smallest number of bytes that is at least `least`, a multiple of `elem` and a multiple of 16.
CHORALE_HD uint64_t whole_units(uint64_t elem, uint64_t least = 1) {
  if (elem == 0) elem = 1;  // senders and receivers refuse it
  uint64_t unit = elem;
  if (elem < unit_bytes && detail::is_power_of_two(elem)) unit = unit_bytes;
  while (unit % unit_bytes != 0) unit += elem;  // 16 times at most
  return detail::quotient(least + unit - 1, unit) * unit;
}

/// Returns the granularity in bytes at which the message may be cut: a tile if the Leg sets tile_bytes, else
/// whole elements and units.
CHORALE_HD uint64_t share_unit(const Leg& message) {
  return message.tile_bytes ? message.tile_bytes : whole_units(message.elem);
}

/// Returns the part that group `id` of `count` moves, in multiples of share_unit().
CHORALE_HD Leg share_of(const Leg& message, uint32_t id, uint32_t count) {
  return share_of(message, id, count, share_unit(message));
}

namespace detail {
/// Returns group `id`'s part (of `count`) of each shard, when `ranks` ranks divide a message into shards. The
/// result equals share_of() of share_of(), but costs less than that call for each shard.
class SharesOfShards {
 public:
  CHORALE_HD SharesOfShards(const Leg& message, uint32_t ranks, uint32_t id, uint32_t count)
      : message_(message),
        unit_(share_unit(message)),
        shards_(units_in(message.bytes, unit_), ranks),
        long_(part(shards_.base + 1, id, count)),
        short_(part(shards_.base, id, count)) {}

  CHORALE_HD Leg operator()(int32_t rank) const {
    const Part& mine = uint32_t(rank) < shards_.more ? long_ : short_;
    Leg share = part_of(message_, unit_, shards_.first(uint32_t(rank)) + mine.first, mine.n);
    share.shard = uint32_t(rank);
    return share;
  }

 private:
  struct Part {
    uint64_t first, n;
  };
  CHORALE_HD static Part part(uint64_t units, uint32_t id, uint32_t count) {
    const EvenParts parts(units, count);
    return {parts.first(id), parts.size(id)};
  }

  const Leg message_;
  const uint64_t unit_;
  const EvenParts shards_;
  const Part long_, short_;
};
}  // namespace detail

}  // namespace chorale
