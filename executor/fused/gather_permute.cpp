#include "chorale/fused/gather_permute.hpp"

#include <fmt/format.h>

#include "executor/system/round_up.hpp"

namespace chorale::fused {

GatherPermute::GatherPermute(World& world, uint64_t max_rows, uint64_t max_row_bytes, const Setup& setup)
    : Buffers(world, setup, [&] {
        Needs needs;
        needs.name = "GatherPermute";
        needs.forms = "packets and window";
        needs.has_form = setup.form != Form::tiles && setup.form != Form::packets_twice;
        needs.sizes = fmt::format("{} rows of {} bytes", max_rows, max_row_bytes);
        needs.capacity = max_rows * round_up(max_row_bytes, unit_bytes);
        needs.packets = packets_for(setup.form, needs.capacity, PacketLimits{}.sent);
        needs.grain = needs.packets;  // all rows may be one unit long, and then one block has them
        needs.window = needs.capacity;
        needs.signals = 1;
        return needs;
      }()) {}

Form GatherPermute::form(uint64_t rows, uint64_t row_bytes) const {
  if (setup().form != Form::by_size) return setup().form;
  const uint64_t bytes = rows * round_up(row_bytes, unit_bytes);
  const int ranks = transport().world_size();
  return form_of(bytes * uint64_t(ranks - 1), 0, ranks);
}

void GatherPermute::check(uint64_t rows, uint64_t cols, uint64_t element_bytes, bool pointers,
                          bool ragged_input) const {
  require_rows(rows, cols, element_bytes, ragged_input);
  require(pointers || cols == 0, "the pointers `in`, `out` and `index` must not be null");
}

LaunchConfig GatherPermute::shape(Form form, uint64_t rows, uint64_t row_bytes) const {
  const uint64_t units = round_up(row_bytes, unit_bytes) / unit_bytes;
  if (form == Form::packets) {
    // Blocks divide the columns.
    const uint64_t blocks = shape_of(form, units, 1).blocks;
    return shape_of(form, units, rows * ((units + blocks - 1) / blocks));
  }
  // A block gets at least 4 KiB.
  return shape_of(form, setup().space == Space::host ? rows : (rows * units + 255) / 256, 1);
}

}  // namespace chorale::fused
