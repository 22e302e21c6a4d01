#include "chorale/fused/transpose.hpp"

#include <fmt/format.h>

#include "executor/system/round_up.hpp"

namespace chorale::fused {
namespace {

constexpr uint64_t slot_bytes = 64 << 10;
constexpr uint64_t least_packets = 512;  ///< bytes that a block sends to a peer, on GPUs

}  // namespace

TransposeAllToAll::TransposeAllToAll(World& world, uint64_t max_bytes, const Setup& setup)
    : Buffers(world, setup, [&] {
        Needs needs;
        const uint64_t ranks = uint64_t(world.ranks());
        needs.name = "TransposeAllToAll";
        needs.forms = "packets, window and tiles";
        needs.has_form = setup.form != Form::packets_twice;
        needs.sizes = fmt::format("{} bytes", max_bytes);
        needs.capacity = max_bytes;
        const uint64_t shard = max_bytes / ranks;
        // Each peer has a part of the blocks, and shares may differ by a unit.
        needs.packets = packets_for(setup.form, shard, PacketLimits{}.sent) * ranks;
        needs.grain = least_packets + 2 * unit_bytes;
        needs.window = setup.form == Form::tiles ? 0 : max_bytes;
        if (setup.form == Form::tiles) needs.slot_bytes = slot_bytes;
        needs.block_factor = uint32_t(ranks) * (setup.form == Form::tiles ? 2 : 1);
        return needs;
      }()) {}

Form TransposeAllToAll::form(uint64_t bytes) const {
  if (setup().form != Form::by_size) return setup().form;
  const uint64_t ranks = uint64_t(transport().world_size()), shard = bytes / ranks;
  return form_of(shard * (ranks - 1), 0, int(ranks));
}

void TransposeAllToAll::check(uint64_t rows, uint64_t cols, uint64_t element_bytes, bool in, bool out) const {
  const uint64_t ranks = uint64_t(transport().world_size()), row = cols * ranks * element_bytes;
  const std::string shape =
      fmt::format("{} rows of {} x {} elements of {} bytes", rows, ranks, cols, element_bytes);
  require(row == 0 || rows <= ~uint64_t{0} / row, shape + " have more bytes than can be addressed");
  require_room(rows * row, shape, fmt::format("max_bytes = {}", rows * row));
  const bool stays = !out && rows * row != 0 && form(rows * row) == Form::window;
  require((in && (out || stays)) || rows * row == 0,
          "the pointer `in` must not be null, and `out` only in the form window");
  require(
      setup().form != Form::tiles || rows * element_bytes <= transport().slot_bytes(),
      fmt::format("a column of {} elements of {} bytes is longer than a slot of {} bytes: use Form::window",
                  rows, element_bytes, slot_bytes));
}

LaunchConfig TransposeAllToAll::shape(Form form, uint64_t rows, uint64_t cols, uint64_t element_bytes,
                                      uint32_t wide) const {
  const uint64_t ranks = uint64_t(transport().world_size()), shard = rows * cols * element_bytes;
  if (form == Form::packets) {
    const uint64_t each = setup().space == Space::host ? 1 : least_packets,
                   pieces = (shard + each - 1) / each;
    const uint64_t blocks = shape_of(form, pieces * ranks, 1).blocks / ranks;
    return shape_of(form, pieces * ranks, shard / unit_bytes / blocks + 1);
  }
  const uint64_t across = (cols + wide - 1) / wide;
  if (form == Form::tiles) return shape_of(form, across * ranks * 2, 1);
  return shape_of(form, (rows + tall - 1) / tall * across, 1);
}

}  // namespace chorale::fused
