#pragma once
/// \file
/// Computes how many bytes a plan's buffers and chunks have for one message.

#include <cstdint>

#include "chorale/divided_up.hpp"
#include "chorale/packet_form.hpp"
#include "chorale/plan.hpp"
#include "chorale/types.hpp"
#include "chorale/usage_error.hpp"

namespace chorale {

/// Holds the bytes of a rank's input and output.
struct MessageSizes {
  uint64_t input = 0, output = 0;
};
/// Returns the sizes for a message of `bytes`. These count the input, but the output for all-gather (as
/// MSCCL++ and nccl-tests count).
/// \throws UsageError if the plan cannot take that size: says which sizes it takes
MessageSizes message_sizes(const Plan&, uint64_t bytes, DType);

/// All chunks have one size; docs/decisions/0001 says why.
struct Layout {
  MessageSizes sizes;
  uint64_t segment_bytes = 0;  ///< bytes of a segment, of input and output alike
  uint64_t chunks_per_segment = 1;
  uint64_t chunk_bytes = 0;  ///< a multiple of `alignment`
  /// One round handles so many bytes of each chunk, see in_rounds(). With one round these are `chunk_bytes`.
  uint64_t slice_bytes = 0;
  uint64_t alignment = 16;  ///< the plan's, made a multiple of 16 for elements, and of `packet` for packets
  uint64_t packet = 16;     ///< payload bytes at whose multiples packets may begin and end

  uint64_t segment_nominal() const { return chunks_per_segment * chunk_bytes; }
  uint64_t rounds() const { return slice_bytes == chunk_bytes ? 1 : divided_up(chunk_bytes, slice_bytes); }
};

/// Returns the layout of a message. Chunks of a plan that sends packets begin and end between packets, so
/// that no operation has half of one.
/// \throws UsageError as message_sizes()
Layout layout_of(const Plan&, uint64_t bytes, DType, PacketForm = PacketForm::ll8);

/// A plan's `buffer_alignment` is at most this many bytes.
inline constexpr uint64_t most_alignment = uint64_t(1) << 32;

/// Returns how many segments the bytes of a message are cut into. These are the segments of the input, but
/// those of the output for all-gather, and for a custom or test plan without input.
uint64_t message_segments(const Plan&);

/// Returns whether any operation of the plan sends or waits for packets.
bool sends_packets(const Plan&);

}  // namespace chorale
