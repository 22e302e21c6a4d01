/// \file
/// A batch is a run of a program's steps that move the same number of bytes and do not touch each other's
/// memory. They run at the same time.
#pragma once

#include <cstdint>

#include "data_steps.cuh"

namespace chorale::cuda {

/// Says which part of a batch a thread moves: a part of one of its steps.
struct BatchPart {
  uint32_t step;
  Turn turn;
};

/// Returns the calling thread's part of a batch. Its warp is at line `first`; each step has `lines` lines,
/// and all steps together have `all`. Lanes past the last line get none.
CHORALE_FN BatchPart batch_lines(const Group& group, uint32_t first, uint32_t lines, uint32_t all) {
  constexpr uint32_t lanes = LL128::units + 1;
  const uint32_t lane = group.rank % detail::warp_threads, slot = lane % lanes, line = first + lane / lanes;
  const bool mine = line < all;
  BatchPart part{mine ? line / lines : 0, Turn{}};
  part.turn.line = mine ? line % lines : 0;
  part.turn.lines = mine ? 1 : 0;
  part.turn.unit = part.turn.line * LL128::units + slot;
  part.turn.n = slot < LL128::units ? part.turn.lines : 0;
  part.turn.bytes = unit_bytes;
  return part;
}

/// Runs a batch of small copies at the same time. Threads that one copy does not need work on another, so
/// that messages to or from all peers take one round trip in total. If Whole is false, the last unit of each
/// copy may have fewer than 16 bytes, and no copy is by lines.
template <class P, bool Whole = true, class MemAt, class PacketsAt>
CHORALE_FN Stop run_batch(const Group& group, const ProgramStep* steps, const Page<P, MemAt, PacketsAt>& page,
                          uint32_t& op) {
  const auto move = [&](const BatchPart& part) {
    const ProgramStep& step = steps[part.step];
    const MemAt plain = page.plain + step.first_plain;
    const PacketsAt packets = page.packets + step.first_packets;
    Turn turn = part.turn;
    if constexpr (detail::by_line<Packets<P>>) {
      if (turn.unit * unit_bytes >= extent_of<P>(step, plain).exist) turn.n = 0;
    }
    Unit held[1];
    if (steps->kind == ProgramStepKind::copy) {
      if (copies_onto_itself(step, page)) return Stop::none;
      plain[0].template read<Whole, 1>(group, turn, held);
      sinks_of(step, plain + 1, packets).template write<1, Whole>(turn, held);
      return Stop::none;
    }
    const Stop stop = packets[0].template read<Whole, 1>(group, turn, held);
    if (stop != Stop::none) {
      op = step.op;
      return stop;
    }
    sinks_of(step, plain, packets + 1).template write<1, Whole>(turn, held);
    return Stop::none;
  };
  Stop stop = Stop::none;
  if (has_lines<P>(*steps)) {
    const uint32_t lines = uint32_t(packet_bytes<LL128>(steps->bytes) / sizeof(LL128)),
                   all = lines * steps->batch;
    const uint32_t stride = group.size / (LL128::units + 1);
    for (uint32_t first = uint32_t(detail::first_line(group)); first < all && stop == Stop::none;
         first += stride) {
      stop = move(batch_lines(group, first, lines, all));
    }
  } else {
    const uint32_t units = uint32_t(Whole ? steps->bytes / unit_bytes : units_of(steps->bytes)),
                   all = units * steps->batch;
    for (uint32_t at = group.rank; at < all && stop == Stop::none; at += group.size) {
      const uint32_t step = steps->batch == 1 ? 0 : at / units;
      const uint32_t unit = at - step * units;
      stop = move({step, Turn{unit, 0, 1,
                              Whole ? unit_bytes : detail::bytes_within(unit, unit_bytes, steps->bytes)}});
    }
  }
  return steps->kind == ProgramStepKind::copy ? stop : group.agree(stop);
}

}  // namespace chorale::cuda
