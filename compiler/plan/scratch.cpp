#include "chorale/scratch.hpp"

#include <algorithm>
#include <numeric>

#include "chorale/divided_up.hpp"
#include "resolve.hpp"

namespace chorale {
namespace {

uint64_t per_chunk_byte(const std::vector<ScratchUse>& use) {
  uint64_t most = 0;
  for (const ScratchUse& of : use) most = std::max(most, of.per_chunk_byte());
  return most;
}

/// Returns the number of chunks of a message of this layout.
uint64_t chunks_of_message(const Plan& plan, const Layout& layout) {
  return message_segments(plan) * layout.chunks_per_segment;
}

/// Returns the longest slice whose scratch fits in the window. `per_byte` must not be 0.
uint64_t longest_slice(const Plan& plan, const Layout& layout, uint64_t per_byte, uint64_t window) {
  // Slices begin at 128-byte lines of memory, and between packets.
  const uint64_t unit = std::lcm(layout.alignment, uint64_t(128));
  // For the plan, a round is like a message, and the plan may be wrong for messages below its minimum.
  const uint64_t least = divided_up(plan.min_message_size, chunks_of_message(plan, layout));
  return std::max({unit, window / per_byte / unit * unit, divided_up(least, unit) * unit});
}

}  // namespace

std::vector<ScratchUse> scratch_use(const Plan& plan) {
  std::vector<ScratchUse> use(plan.ranks());
  const auto chunks_of = [&](uint32_t rank) { return plan.gpus[rank].chunks[size_t(BufferKind::scratch)]; };
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    use[rank].plain_banks = plan.use_double_scratch_buffer ? 2 : 1;
    if (plan.only_rank) use[rank].plain = use[rank].packets = chunks_of(rank);
  }
  if (plan.only_rank) return use;
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace) {
    for_each_place(plan, gpu, block, op,
                   [&](const Field& field, const Operand& operand, uint32_t rank, BufferKind buffer) {
                     if (buffer != BufferKind::scratch || rank >= use.size()) return;
                     const uint64_t chunks = chunks_of(rank);
                     const bool inside = operand.size <= chunks && operand.index <= chunks - operand.size;
                     uint64_t& touched = is_packet(field.role) ? use[rank].packets : use[rank].plain;
                     touched = std::max(touched, inside ? operand.index + operand.size : chunks);
                   });
  });
  return use;
}

Layout in_rounds(const Plan& plan, const std::vector<ScratchUse>& use, Layout layout, uint64_t window) {
  const uint64_t per_byte = per_chunk_byte(use);
  if (window == 0 || per_byte == 0 || layout.chunk_bytes <= window / per_byte) return layout;
  const uint64_t slice = longest_slice(plan, layout, per_byte, window);
  if (slice >= layout.chunk_bytes) return layout;
  // Slices have equal lengths, up to rounding to 128-byte lines of memory.
  const uint64_t unit = std::lcm(layout.alignment, uint64_t(128));
  const uint64_t even = divided_up(layout.chunk_bytes, divided_up(layout.chunk_bytes, slice));
  layout.slice_bytes = std::min(slice, divided_up(even, unit) * unit);
  return layout;
}

ScratchFormula scratch_formula(const Plan& plan, uint64_t window) {
  const Layout layout = layout_of(plan, 0, DType::f32);
  const uint64_t per_byte = per_chunk_byte(scratch_use(plan));
  if (per_byte == 0) return {};
  return {
      double(per_byte) / double(chunks_of_message(plan, layout)),
      window == 0 ? UINT64_MAX : std::max(window, per_byte * longest_slice(plan, layout, per_byte, window))};
}

}  // namespace chorale
