#include "chorale/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "chorale/collective.hpp"
#include "chorale/divided_up.hpp"
#include "chorale/limits.hpp"

namespace chorale {
namespace {

uint64_t most_chunks(const Plan& plan, BufferKind kind) {
  uint64_t most = 0;
  for (const Gpu& gpu : plan.gpus) most = std::max(most, gpu.chunks[size_t(kind)]);
  return most;
}

/// Returns the bytes of the longest block of plain elements that a codec of the plan encodes.
uint64_t longest_block(const Plan& plan, DType dtype) {
  if (!has_codecs(dtype)) {
    throw UsageError(fmt::format(
        "plan '{}' encodes elements, which is for f32, f16 and bf16, not for {}: run it with one of "
        "these, or choose a plan without codecs",
        plan.name, dtype_name(dtype)));
  }
  uint64_t longest = 1;
  for (const Codec& codec : plan.extension.codecs) {
    if (!codec.is_valid())
      throw UsageError(
          fmt::format("plan '{}' has a codec with blocks of {} elements", plan.name, codec.block));
    longest = std::lcm(longest, codec.block * dtype_size(dtype));
  }
  return longest;
}

void check_size(const Plan& plan, uint64_t bytes, const Layout& layout, const Segmentation& segments) {
  using Wide = unsigned __int128;
  const uint64_t banks = 4;  // of scratch: two of each kind
  const Wide buffers[] = {Wide(layout.segment_bytes) * segments.input,
                          Wide(layout.segment_bytes) * segments.output,
                          Wide(layout.chunk_bytes) * most_chunks(plan, BufferKind::input),
                          Wide(layout.chunk_bytes) * most_chunks(plan, BufferKind::output),
                          Wide(layout.chunk_bytes) * most_chunks(plan, BufferKind::scratch) * banks};
  if (bytes <= max_buffer_bytes &&
      *std::max_element(std::begin(buffers), std::end(buffers)) <= max_buffer_bytes)
    return;
  throw UsageError(
      fmt::format("plan '{}': a message of {} bytes needs buffers of more than {}, which no "
                  "machine has; send less at a time",
                  plan.name, bytes, max_buffer_bytes));
}

/// Returns a text with the valid sizes nearest to `bytes`, which is not a multiple of `step`.
std::string nearest(const Plan& plan, uint64_t bytes, uint64_t step) {
  const uint64_t below = bytes / step * step, above = below + step;
  if (above < below || above > plan.max_message_size) return fmt::format("the nearest size is {}", below);
  return fmt::format("the nearest sizes are {} and {}", below, above);
}

/// Returns the number of chunks in one segment, from both buffers.
uint64_t chunks_per_segment(const Plan& plan, uint64_t in, uint64_t out, const Segmentation& segments) {
  const auto divided = [&](uint64_t chunks, uint64_t parts, const char* buffer) {
    if (chunks % parts != 0) {
      throw UsageError(fmt::format("plan '{}': its {} {} chunks cannot be shared by the {} parts of {}",
                                   plan.name, chunks, buffer, parts, plan.collective));
    }
    return chunks / parts;
  };
  const uint64_t of_input = divided(in, segments.input, "input");
  const uint64_t of_output = divided(out, segments.output, "output");
  if (of_input && of_output && of_input != of_output) {
    throw UsageError(fmt::format("plan '{}': a part of the input has {} chunks, but one of the output has {}",
                                 plan.name, of_input, of_output));
  }
  return std::max<uint64_t>(1, std::max(of_input, of_output));
}

}  // namespace

uint64_t message_segments(const Plan& plan) {
  const Segmentation segments = segmentation(plan);
  const CollectiveInfo& collective = collective_info(plan.collective);
  const bool by_output = collective.counts_output() ||
                         (collective.has_free_sizes() && most_chunks(plan, BufferKind::input) == 0);
  return by_output ? segments.output : segments.input;
}

bool sends_packets(const Plan& plan) {
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) {
      for (const Op& op : block.ops) {
        for (const Field& field : info(op.code).fields) {
          if (is_packet(field.role)) return true;
        }
      }
    }
  }
  return false;
}

PacketForm packet_form_by_size(const Plan& plan, uint64_t bytes) {
  constexpr uint64_t least = 32 << 10, unit = payload_of(PacketForm::ll16).bytes;
  if (bytes < least) return PacketForm::ll16;
  // A part that does not end with a whole unit takes a slow path.
  const uint64_t parts = std::max<uint64_t>(message_segments(plan), 1);
  return bytes % (unit * parts) == 0 ? PacketForm::ll128 : PacketForm::ll16;
}

Layout layout_of(const Plan& plan, uint64_t bytes, DType dtype, PacketForm form) {
  const uint64_t element = dtype_size(dtype);
  if (element == 0) throw UsageError(fmt::format("dtype {} is none that we know", int(dtype)));
  if (plan.gpus.empty()) throw UsageError(fmt::format("plan '{}' has no ranks", plan.name));
  if (plan.buffer_alignment == 0 || plan.buffer_alignment > most_alignment) {
    throw UsageError(
        fmt::format("plan '{}': a buffer alignment of {} bytes", plan.name, plan.buffer_alignment));
  }
  Layout layout;
  if (form == PacketForm::ll128 && sends_packets(plan)) layout.packet = payload_of(form).bytes;
  if (!plan.extension.codecs.empty()) layout.block = longest_block(plan, dtype);
  layout.alignment = std::lcm(std::lcm(plan.buffer_alignment, layout.packet), layout.block);
  const uint64_t in = most_chunks(plan, BufferKind::input), out = most_chunks(plan, BufferKind::output);
  const Segmentation segments = segmentation(plan);
  layout.chunks_per_segment = chunks_per_segment(plan, in, out, segments);

  const uint64_t parts = message_segments(plan);
  const uint64_t step = parts * element;
  if (bytes % step != 0) {
    const std::string why = parts == 1 ? fmt::format("the {} bytes of a {}", element, dtype_name(dtype))
                                       : fmt::format("{} parts of {} elements ({} bytes each)", parts,
                                                     dtype_name(dtype), element);
    throw UsageError(fmt::format("plan '{}': {} bytes are no multiple of {}: {}", plan.name, bytes, why,
                                 nearest(plan, bytes, step)));
  }
  if (bytes != 0 && (bytes < plan.min_message_size || bytes > plan.max_message_size)) {
    throw UsageError(fmt::format("plan '{}' takes messages of {} to {} bytes, not {}", plan.name,
                                 plan.min_message_size, plan.max_message_size, bytes));
  }
  layout.segment_bytes = bytes / parts;
  const uint64_t units = divided_up(layout.segment_bytes, layout.alignment);
  layout.chunk_bytes = divided_up(units, layout.chunks_per_segment) * layout.alignment;
  layout.slice_bytes = layout.chunk_bytes;
  check_size(plan, bytes, layout, segments);
  const bool may_be_absent = collective_info(plan.collective).has_free_sizes();
  layout.sizes.input = in || !may_be_absent ? layout.segment_bytes * segments.input : 0;
  layout.sizes.output = out || !may_be_absent ? layout.segment_bytes * segments.output : 0;
  return layout;
}

MessageSizes message_sizes(const Plan& plan, uint64_t bytes, DType dtype) {
  return layout_of(plan, bytes, dtype).sizes;
}

}  // namespace chorale
