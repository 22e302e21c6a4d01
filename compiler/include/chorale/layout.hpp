#pragma once
/// \file
/// A layout says how many bytes the buffers and chunks of a plan have for one message.

#include <cstdint>

#include "chorale/divided_up.hpp"
#include "chorale/packet_form.hpp"
#include "chorale/plan.hpp"
#include "chorale/types.hpp"
#include "chorale/usage_error.hpp"

namespace chorale {

/// Holds the bytes of one rank's input and output.
struct MessageSizes {
  uint64_t input = 0, output = 0;
};
/// Returns the bytes of input and output for one message.
/// \param bytes  bytes of the input; for all-gather, bytes of the output (as in MSCCL++ and nccl-tests)
/// \throws UsageError if the plan does not take that size; the message says which sizes it takes
MessageSizes message_sizes(const Plan&, uint64_t bytes, DType);

/// Says how a message is cut into chunks. All chunks have one size; docs/decisions/0001 says why.
///
/// A buffer is first cut into *segments*, see segmentation(): the output of an all-gather has one for each
/// rank. Each segment is cut into `chunks_per_segment` chunks. A segment of 100 bytes with 4 chunks and an
/// alignment of 16 has chunks of 32 bytes. The last one has only 4 bytes of data, and its other 28 bytes
/// exist in no buffer. The 100 bytes are the *actual* size of the segment, and 4 * 32 = 128 its *nominal*
/// size.
struct Layout {
  MessageSizes sizes;
  uint64_t segment_bytes = 0;  ///< actual bytes of a segment, of input and output alike
  uint64_t chunks_per_segment = 1;
  uint64_t chunk_bytes = 0;  ///< a multiple of `alignment`
  /// Holds how many bytes of each chunk one round processes, see in_rounds(). With one round it equals
  /// `chunk_bytes`.
  uint64_t slice_bytes = 0;
  uint64_t alignment = 16;  ///< least common multiple of the plan's alignment, `packet` and `block`
  uint64_t packet = 16;     ///< bytes; the payload of packets begins and ends at multiples of it
  /// Gives the bytes at whose multiples the blocks of plain elements begin and end that a codec encodes; 1:
  /// the plan has no codecs.
  uint64_t block = 1;
  /// This is true if the segments of a buffer are not adjacent in memory, as in a piece of a longer message.
  /// An operation that covers two segments then moves them separately.
  bool segments_apart = false;

  /// Returns the nominal bytes of a segment, as if all its chunks were full.
  uint64_t segment_nominal() const { return chunks_per_segment * chunk_bytes; }
  /// Returns in how many rounds the message runs.
  uint64_t rounds() const { return slice_bytes == chunk_bytes ? 1 : divided_up(chunk_bytes, slice_bytes); }
};

/// Returns the layout of a message. If the plan sends packets, chunks begin and end between packets, so no
/// operation has half a packet.
/// \param bytes  as for message_sizes()
/// \throws UsageError as message_sizes()
Layout layout_of(const Plan&, uint64_t bytes, DType, PacketForm = PacketForm::ll8);

/// A plan's `buffer_alignment` is at most this many bytes.
inline constexpr uint64_t most_alignment = uint64_t(1) << 32;

/// Returns how many segments a message has. It counts the segments of the input. For all-gather, and for a
/// custom or test plan without input, it counts those of the output.
uint64_t message_segments(const Plan&);

/// Returns whether any operation of the plan sends or waits for packets.
bool sends_packets(const Plan&);

/// Returns the form of packets that is probably the fastest for a message of `bytes` bytes, if LL128 packets
/// work between all ranks: ll128 from 32 KiB on, if the message divides into whole units of 16 bytes,
/// otherwise ll16. See docs/decisions/0028-packet-forms-by-size.md.
PacketForm packet_form_by_size(const Plan&, uint64_t bytes);

}  // namespace chorale
