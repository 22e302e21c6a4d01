#include "chorale/fused/quantised.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "executor/system/round_up.hpp"

namespace chorale::fused {
namespace {

/// Returns the bytes of `elements` codes, as whole blocks, and of their scales, as whole units.
uint64_t bytes_of_codes(uint64_t elements, uint32_t block) { return round_up(elements, block); }
uint64_t bytes_of_scales(uint64_t elements, uint32_t block) {
  return round_up(bytes_of_codes(elements, block) / block * sizeof(float), unit_bytes);
}

bool possible(uint32_t block) { return block >= 16 && block <= 512 && std::has_single_bit(block); }

}  // namespace

Quantised::Quantised(const char* name, World& world, uint64_t max_elements, uint32_t block,
                     const Setup& setup, bool sums)
    : Buffers(world, setup,
              [&] {
                Needs needs;
                needs.name = name;
                needs.forms = "packets and window";
                needs.has_form = setup.form != Form::tiles && setup.form != Form::packets_twice;
                needs.sizes = fmt::format("{} elements in blocks of {}", max_elements, block);
                if (!possible(block)) {
                  needs.wrong =
                      fmt::format("block is {}: it must be 16, 32, 64, 128, 256 or 512 elements", block);
                  return needs;
                }
                needs.capacity = bytes_of_codes(max_elements, block);
                // A scale takes a unit in packets.
                needs.grain = block + unit_bytes;
                needs.packets =
                    packets_for(setup.form, needs.capacity / block * needs.grain, PacketLimits{}.sent);
                needs.window = (sums ? 2 : 1) * (needs.capacity + bytes_of_scales(max_elements, block));
                return needs;
              }()),
      block_(block),
      shift_(uint32_t(std::countr_zero(block / detail::per_code_unit))) {}

Form Quantised::form(uint64_t elements) const {
  const bool by_size = setup().form == Form::by_size;
  const uint64_t blocks = bytes_of_codes(elements, block_) / block_, sent = blocks * (block_ + unit_bytes);
  const int ranks = transport().world_size();
  const Form form = by_size ? form_of(sent * uint64_t(ranks - 1), 0, ranks) : setup().form;
  const uint64_t groups = shape(form, elements).blocks;
  if (form == Form::window || packets_fit((blocks + groups - 1) / groups * (block_ + unit_bytes)))
    return form;
  require(by_size, fmt::format("{} elements do not fit in its packets: use Form::by_size", elements));
  return Form::window;
}

void Quantised::check(uint64_t elements, bool pointers) const {
  require(elements <= ~uint64_t{0} - block_,
          fmt::format("{} elements are more than can be addressed", elements));
  require_room(bytes_of_codes(elements, block_), fmt::format("the codes of {} elements", elements),
               fmt::format("max_elements = {}", elements));
  require(pointers || elements == 0, "the pointers `in` and `out` must not be null");
}

detail::CodeLayout Quantised::layout(bool sums) const {
  const uint64_t begin = sums ? capacity() + bytes_of_scales(capacity(), block_) : 0;
  return {begin, begin + capacity()};
}

LaunchConfig Quantised::shape(Form form, uint64_t elements) const {
  // A block of threads gets at least 2 KiB of codes.
  const uint64_t codes = bytes_of_codes(elements, block_), least = std::max(block_, 2048u);
  const uint64_t pieces = setup().space == Space::host ? codes / block_ : (codes + least - 1) / least;
  const uint64_t blocks = shape_of(form, pieces, 1).blocks;
  return shape_of(form, pieces, (codes / unit_bytes + blocks - 1) / blocks);
}

QuantisedAllReduce::QuantisedAllReduce(World& world, uint64_t max_elements, uint32_t block,
                                       const Setup& setup)
    : Quantised("QuantisedAllReduce", world, max_elements, block, setup, true) {}

QuantisedAllGather::QuantisedAllGather(World& world, uint64_t max_elements, uint32_t block,
                                       const Setup& setup)
    : Quantised("QuantisedAllGather", world, max_elements, block, setup, false) {}

}  // namespace chorale::fused
