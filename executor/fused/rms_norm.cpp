#include "chorale/fused/rms_norm.hpp"

#include <fmt/format.h>

#include "executor/system/round_up.hpp"

namespace chorale::fused {

RmsNormAllReduce::RmsNormAllReduce(World& world, uint64_t max_rows, uint64_t max_row_bytes,
                                   const Setup& setup)
    : Buffers(world, setup, [&] {
        Needs needs;
        needs.name = "RmsNormAllReduce";
        needs.forms = "packets, packets_twice and window";
        needs.has_form = setup.form != Form::tiles;
        needs.sizes = fmt::format("{} rows of {} bytes", max_rows, max_row_bytes);
        const uint64_t row = round_up(max_row_bytes, unit_bytes);
        needs.capacity = max_rows * row;
        needs.grain = row;
        needs.packets = packets_for(setup.form, needs.capacity, PacketLimits{}.twice);
        needs.window = 2 * needs.capacity;
        return needs;
      }()) {}

Form RmsNormAllReduce::form(uint64_t rows, uint64_t row_bytes) const {
  const uint64_t row = round_up(row_bytes, unit_bytes), bytes = rows * row;
  const int ranks = transport().world_size();
  const bool by_size = setup().form == Form::by_size;
  const Form form = by_size ? form_of(bytes * uint64_t(ranks - 1), bytes, ranks) : setup().form;
  const uint64_t blocks = shape_of(form, rows, row / unit_bytes).blocks;
  if (form == Form::window || packets_fit((rows + blocks - 1) / blocks * row)) return form;
  require(by_size,
          fmt::format("rows of {} bytes do not fit in its packets: make it with max_row_bytes = {}, or "
                      "with Form::by_size",
                      row_bytes, row_bytes));
  return Form::window;
}

void RmsNormAllReduce::check(uint64_t rows, uint64_t cols, uint64_t element_bytes, bool pointers,
                             bool ragged_input) const {
  require_rows(rows, cols, element_bytes, ragged_input);
  require(pointers || rows == 0 || cols == 0, "the pointers `in` and `weight` must not be null");
}

}  // namespace chorale::fused
