#pragma once
/// \file
/// One rank's blocks run from an image: a plan bound to a message. An image consists of flat arrays of
/// records, addressed by position.
///
/// Operands are given in *nominal* bytes: as if every chunk had its full size. locate() maps a nominal
/// position to its place in memory, and says how many bytes exist there.
///
/// A long message runs in rounds. Each round handles one slice of every chunk, and counts as if a chunk were
/// no longer than its slice.

#include <cstdint>

#include "chorale/device/lines.hpp"
#include "chorale/plan.hpp"
#include "chorale/types.hpp"

namespace chorale::image {

/// Describes a buffer that operations of this rank use, its own or a peer's.
struct Buffer {
  char* base = nullptr;                  ///< null: memory of a peer, which publishes it at every run
  uint64_t segment_nominal = unlimited;  ///< distance between segments in nominal bytes
  uint64_t segment_bytes = unlimited;    ///< bytes of a segment that exist
  uint64_t bank_bytes = 0;               ///< scratch: distance between banks; 0: there is one bank
  uint64_t slice_bytes = 0;  ///< nominal bytes of a chunk per round; 0: scratch, or a single round
  uint64_t chunk_bytes = 0;  ///< with rounds: distance between chunks in memory
  uint32_t rank = 0;         ///< the owner
  uint32_t kind = 0;         ///< a BufferKind
  bool encoded = false;      ///< scratch whose elements are encoded, by the codec of the operation
};

/// Lists the buffers of the members of a switch channel in rank order. All have the same shape.
struct Switch {
  uint32_t first = 0;  ///< position in Image::members
  uint32_t n = 0;
};

/// Describes an operand: `bytes` nominal bytes from nominal byte `start` of a buffer.
struct Place {
  uint64_t start = 0, bytes = 0;
  uint64_t offset = 0;  ///< offset of `start` in the buffer, in bytes
  uint64_t valid = 0;   ///< bytes that exist from there on, in its segment
  uint32_t buffer = 0;  ///< position in Image::buffers or, for switched roles, in Image::switches
  /// This is true if the operand is in one segment. Such an operand has one address and need not be cut.
  bool whole = false;
};

/// Describes one end of a memory or port channel. Memory channels come first.
struct Channel {
  uint32_t peer = 0;
  /// Names the signal of the peer to which a post adds; none: no block can wait for it.
  uint32_t signal_at_peer = none;
  static constexpr uint32_t none = ~uint32_t{0};
};

/// Describes one operation.
struct Record {
  Opcode code;
  ChannelType via;
  ReduceOp reduce_op;
  uint16_t codec;  ///< Codec::packed(); 0: no operand is encoded
  uint32_t first_place = 0, sources = 0, dests = 0;
  uint32_t first_id = 0, ids = 0;  ///< in Image::ids: channels, semaphores or the barrier of this rank
  uint32_t group_index = 0, group_size = 0;
  uint32_t participants = 0;
  uint32_t body = 0;
  uint64_t turn_bytes = 0, turns = 0;
};

/// Lists one thread block's operations. A record has the same position as the operation in the plan's thread
/// block.
struct Block {
  uint32_t first = 0, n = 0;  ///< in Image::records
};

struct Image {
  const Record* records = nullptr;
  const Place* places = nullptr;
  const uint32_t* ids = nullptr;
  const Block* blocks = nullptr;
  const Buffer* buffers = nullptr;
  const Switch* switches = nullptr;
  const uint32_t* members = nullptr;  ///< positions in buffers
  const Channel* channels = nullptr;
  uint32_t n_blocks = 0;
  uint32_t n_channels = 0;
  uint64_t alignment = 16;  ///< the unit in bytes by which groups of blocks share an operand
  uint64_t skip = 0;        ///< bytes of every chunk before the slice of this round
};

// -- Address arithmetic

/// Says where a nominal position is in memory.
struct Position {
  uint64_t offset;  ///< bytes from the start of the buffer; with rounds, from `skip` bytes after it
  uint64_t valid;   ///< bytes that exist from there on, in this segment
  uint64_t run;     ///< nominal bytes to the end of this segment
};

/// Does what locate() does, for a buffer that is handled in rounds.
inline Position locate_in_slices(const Buffer& buffer, uint64_t nominal, uint64_t skip) {
  const uint64_t segment = nominal / buffer.segment_nominal, in_segment = nominal % buffer.segment_nominal;
  const uint64_t inside = in_segment % buffer.slice_bytes;
  const uint64_t chunk = in_segment / buffer.slice_bytes * buffer.chunk_bytes;
  const uint64_t run = buffer.slice_bytes - inside, at = chunk + skip + inside;
  const uint64_t chunk_end = chunk + buffer.chunk_bytes;
  const uint64_t end = chunk_end < buffer.segment_bytes ? chunk_end : buffer.segment_bytes;
  const uint64_t valid = at < end ? end - at : 0;
  return {segment * buffer.segment_bytes + chunk + inside, valid < run ? valid : run, run};
}

inline Position locate(const Buffer& buffer, uint64_t nominal, uint64_t skip = 0) {
  if (buffer.segment_nominal == unlimited) return {nominal, unlimited, unlimited};
  if (buffer.slice_bytes != 0) return locate_in_slices(buffer, nominal, skip);
  const uint64_t segment = nominal / buffer.segment_nominal, inside = nominal % buffer.segment_nominal;
  const uint64_t behind = inside < buffer.segment_bytes ? inside : buffer.segment_bytes;
  return {segment * buffer.segment_bytes + behind, buffer.segment_bytes - behind,
          buffer.segment_nominal - inside};
}

/// Describes a part of an operand, in bytes from the operand's start.
struct Range {
  uint64_t first = 0, end = 0;
};

/// Returns the share of block `index` of `size` in the turn that begins at `turn_first` of an operand of
/// `bytes` bytes. With `turn_bytes` 0 the turn is the whole operand. Shares are whole units and as even as
/// possible: the first blocks have one unit more.
inline Range range_of(uint64_t bytes, uint64_t turn_first, uint64_t turn_bytes, uint32_t index, uint32_t size,
                      uint64_t alignment) {
  Range range{0, bytes};
  if (turn_bytes != 0) {
    range.first = turn_first < bytes ? turn_first : bytes;
    range.end = bytes - range.first < turn_bytes ? bytes : range.first + turn_bytes;
  }
  if (size < 2) return range;
  const uint64_t length = range.end - range.first;
  const uint64_t units = length / alignment + (length % alignment != 0 ? 1 : 0);
  const uint64_t base = units / size, more = units % size;
  const uint64_t begin = alignment * (index * base + (index < more ? index : more));
  const uint64_t end = begin + alignment * (base + (index < more ? 1 : 0));
  return {range.first + (begin < length ? begin : length), range.first + (end < length ? end : length)};
}

}  // namespace chorale::image
