#include "steps.hpp"

#include <algorithm>

#include "chorale/types.hpp"
#include "far_place.hpp"

namespace chorale::lowering {
namespace {

bool moves_data(ProgramStepKind kind) { return kind >= ProgramStepKind::copy; }

/// Returns how many bytes of a step, in multiples of `grain`, exist at all its places and are aligned in
/// every turn if the passed buffers are.
uint64_t whole_bytes(const RecordedStep& step, uint64_t grain) {
  uint64_t bytes = step.step.bytes;
  for (const uint64_t stride : step.plain_strides) {
    if (stride % unit_bytes != 0) return 0;
  }
  for (const ProgramPlace& place : step.plain) {
    if ((place.at & ~(ProgramPlace::in | ProgramPlace::out)) % unit_bytes != 0 || place.at == 0) return 0;
    bytes = std::min(bytes, place.valid);
  }
  return bytes / grain * grain;
}

/// Returns whole_bytes() of a step with LL128 packets. The padding of its last lines counts, if all plain
/// places end in front of it, after a whole unit: the fast path knows one end per step.
uint64_t whole_bytes_of_lines(const RecordedStep& step) {
  const uint64_t exist = whole_bytes(step, 1);
  const bool one_end = std::all_of(step.plain.begin(), step.plain.end(), [&](const ProgramPlace& place) {
    return std::min(place.valid, step.step.bytes) == exist;
  });
  return one_end && exist % unit_bytes == 0 ? step.step.bytes
                                            : exist / packet_payload<LL128> * packet_payload<LL128>;
}

/// Returns how many bytes of a step have to be moved. A plain sink drops the padding of a last chunk, so a
/// step without packets need not move it. Packets of padding are sent, because the peer waits for them.
uint64_t kept_bytes(const RecordedStep& step) {
  if (!step.packets.empty()) return step.step.bytes;
  uint64_t kept = 0;
  for (size_t sink = step.plain.size() - step.step.plain_sinks; sink < step.plain.size(); ++sink)
    kept = std::max(kept, step.plain[sink].valid);
  return std::min(kept, step.step.bytes);
}

uint8_t passed_by(const RecordedStep& step) {
  uint8_t passed = 0;
  for (const ProgramPlace& place : step.plain) {
    if (place.at & ProgramPlace::in) passed |= 1;
    if (place.at & ProgramPlace::out) passed |= 2;
  }
  return passed;
}

/// Returns true if a step synchronises all threads of the block, so that a sync beside it adds no order. Such
/// a step orders earlier accesses before later ones and touches no data itself.
bool synchronises(ProgramStepKind kind) {
  switch (kind) {
    case ProgramStepKind::sync:
    case ProgramStepKind::post:
    case ProgramStepKind::await:
    case ProgramStepKind::await_relaxed:
    case ProgramStepKind::drain:
    case ProgramStepKind::acquire:
    case ProgramStepKind::release:
    case ProgramStepKind::barrier:
    case ProgramStepKind::push:
    case ProgramStepKind::loop:
    case ProgramStepKind::repeat:
      return true;
    default:
      return false;
  }
}

/// Returns true if a step ends by synchronising all threads of the block.
bool ends_in_barrier(ProgramStepKind kind) {
  return synchronises(kind) || kind == ProgramStepKind::unpack || kind == ProgramStepKind::reduce_packets;
}

/// Returns true if two adjacent steps can be one: adjacent posts go out together, and adjacent waits wait
/// together.
bool joins(const ProgramStep& before, const ProgramStep& next) {
  if (before.kind != next.kind) return false;
  return next.kind == ProgramStepKind::post || next.kind == ProgramStepKind::post_relaxed ||
         next.kind == ProgramStepKind::await || next.kind == ProgramStepKind::await_relaxed;
}

/// Returns whether two places are in the input and the output that one peer publishes.
bool in_both_buffers_of_peer(const ProgramPlace& a, const ProgramPlace& b) {
  const uint64_t one = a.at & ~ProgramPlace::sliced, other = b.at & ~ProgramPlace::sliced;
  if (!remote::FarPlace::is(one) || !remote::FarPlace::is(other)) return false;
  const auto named = [](uint64_t at) { return remote::FarPlace::of(reinterpret_cast<const void*>(at)); };
  return named(one).rank == named(other).rank && named(one).buffer != named(other).buffer;
}

/// Returns true if two pieces of memory may overlap. A plan in place has its input and output in one buffer,
/// so the passed input may be the passed output.
bool may_touch(const ProgramPlace& a, uint64_t a_bytes, const ProgramPlace& b, uint64_t b_bytes) {
  if (in_both_buffers_of_peer(a, b)) return true;
  constexpr uint64_t tags = ProgramPlace::in | ProgramPlace::out;
  if ((a.at & tags) != (b.at & tags)) return (a.at & tags) != 0 && (b.at & tags) != 0;
  // The distance between banks is larger than a piece, and the same for both pieces.
  return a.at < b.at + b_bytes && b.at < a.at + a_bytes;
}

bool is_batchable(const RecordedStep& step) {
  const ProgramStep& of = step.step;
  // A step that waits and sends could wait for data that another step of the batch has yet to send.
  return of.kind == ProgramStepKind::copy || (of.kind == ProgramStepKind::unpack && of.packet_sinks == 0);
}

/// Returns the number of bytes that a plain place covers in all turns of its loop, or `unlimited` if it moves
/// backwards.
uint64_t bytes_of_all_turns(const RecordedStep& step, size_t place) {
  if (step.plain_strides.empty()) return step.step.bytes;
  const uint64_t stride = step.plain_strides[place];
  return int64_t(stride) < 0 ? unlimited : step.step.bytes + (step.turns - 1) * stride;
}

/// Returns true if steps of one turn may touch the same memory at these plain places. Places that advance
/// differently are compared over all turns.
bool places_touch(const RecordedStep& a, size_t one, const RecordedStep& b, size_t other) {
  const bool together = a.plain_strides.empty() || a.plain_strides[one] == b.plain_strides[other];
  const uint64_t a_bytes = together ? a.step.bytes : bytes_of_all_turns(a, one),
                 b_bytes = together ? b.step.bytes : bytes_of_all_turns(b, other);
  if (a_bytes == unlimited || b_bytes == unlimited) return true;
  return may_touch(a.plain[one], a_bytes, b.plain[other], b_bytes);
}

bool independent(const RecordedStep& a, const RecordedStep& b) {
  const size_t a_sources = a.step.kind == ProgramStepKind::copy ? 1 : 0,
               b_sources = b.step.kind == ProgramStepKind::copy ? 1 : 0;
  for (size_t one = 0; one < a.plain.size(); ++one) {
    for (size_t other = 0; other < b.plain.size(); ++other) {
      const bool written = one >= a_sources || other >= b_sources;
      if (written && places_touch(a, one, b, other)) return false;
    }
  }
  return true;
}

}  // namespace

void mark_whole(std::vector<RecordedStep>& steps, PacketForm packet, bool keep_tails) {
  std::vector<RecordedStep> split;
  split.reserve(steps.size());
  for (RecordedStep& step : steps) {
    if (!moves_data(step.step.kind)) {
      split.push_back(std::move(step));
      continue;
    }
    step.step.bytes = kept_bytes(step);
    if (step.step.bytes == 0) continue;
    step.step.passed = passed_by(step);
    if (step.step.kind == ProgramStepKind::coded) {
      // It is not split, because that could cut a block.
      step.step.whole = whole_bytes(step, 1) == step.step.bytes;
      split.push_back(std::move(step));
      continue;
    }
    const bool lines = packet == PacketForm::ll128 && !step.packets.empty();
    const uint64_t whole = lines ? whole_bytes_of_lines(step) : whole_bytes(step, unit_bytes);
    const bool all = whole == step.step.bytes;
    step.step.whole = all || (whole != 0 && !keep_tails) ? 1 : 0;
    if (all || step.step.whole == 0) {
      split.push_back(std::move(step));
      continue;
    }
    RecordedStep tail = step;
    tail.step.whole = 0;
    tail.step.bytes -= whole;
    for (ProgramPlace& place : tail.plain) {
      place.at += whole;
      if (place.valid != unlimited) place.valid -= whole;
    }
    for (ProgramPlace& place : tail.packets) place.at += lines ? packet_offset<LL128>(whole) : 2 * whole;
    step.step.bytes = whole;
    split.push_back(std::move(step));
    split.push_back(std::move(tail));
  }
  steps = std::move(split);
}

bool are_whole(const std::vector<RecordedStep>& steps) {
  return std::all_of(steps.begin(), steps.end(),
                     [](const RecordedStep& of) { return !moves_data(of.step.kind) || of.step.whole != 0; });
}

bool is_short(const std::vector<RecordedStep>& steps) {
  constexpr uint64_t most_threads = 512;  // as in interpreter.cuh
  return std::all_of(steps.begin(), steps.end(), [](const RecordedStep& of) {
    return !moves_data(of.step.kind) || units_of(of.step.bytes) <= most_threads;
  });
}

void tidy(std::vector<RecordedStep>& steps) {
  std::vector<RecordedStep> kept;
  kept.reserve(steps.size());
  for (size_t at = 0; at < steps.size(); ++at) {
    RecordedStep& step = steps[at];
    if (step.step.kind == ProgramStepKind::sync) {
      const bool last = at + 1 == steps.size();
      if (last || synchronises(steps[at + 1].step.kind)) continue;
      if (kept.empty() || ends_in_barrier(kept.back().step.kind)) continue;
    }
    if (!kept.empty() && joins(kept.back().step, step.step)) {
      kept.back().items.insert(kept.back().items.end(), step.items.begin(), step.items.end());
      kept.back().step.n = uint16_t(kept.back().items.size());
      continue;
    }
    kept.push_back(std::move(step));
  }
  steps = std::move(kept);
}
uint16_t batch_from(const std::vector<RecordedStep>& steps, size_t at, size_t end) {
  constexpr size_t most = 32;
  if (!is_batchable(steps[at])) return 1;
  size_t next = at + 1;
  for (; next < end && next - at < most; ++next) {
    if (!is_batchable(steps[next]) || steps[next].step.kind != steps[at].step.kind ||
        steps[next].step.bytes != steps[at].step.bytes || steps[next].step.whole != steps[at].step.whole ||
        steps[next].packets.empty() != steps[at].packets.empty()) {
      break;
    }
    bool apart = true;
    for (size_t before = at; before < next; ++before)
      apart = apart && independent(steps[before], steps[next]);
    if (!apart) break;
  }
  return uint16_t(next - at);
}

bool is_exchange(const std::vector<RecordedStep>& steps) {
  for (const RecordedStep& of : steps) {
    const ProgramStep& step = of.step;
    switch (step.kind) {
      case ProgramStepKind::sync:
        break;
      case ProgramStepKind::copy:
      case ProgramStepKind::unpack:
        break;
      case ProgramStepKind::reduce_packets:
        if (ReduceOp(step.reduce_op) != ReduceOp::sum && ReduceOp(step.reduce_op) != ReduceOp::avg)
          return false;
        break;
      default:
        return false;
    }
  }
  return true;
}

uint64_t busy_threads(const std::vector<RecordedStep>& steps, PacketForm packet) {
  uint64_t most = 0;
  for (const RecordedStep& of : steps) {
    const ProgramStep& step = of.step;
    if (!moves_data(step.kind)) {
      most = std::max<uint64_t>(most, step.n);
      continue;
    }
    // A warp takes a block of elements at a time, which has at least 4 units.
    if (step.kind == ProgramStepKind::coded) {
      most = std::max<uint64_t>(most, 8 * units_of(step.bytes));
      continue;
    }
    const bool lines = packet == PacketForm::ll128 && !of.packets.empty();
    const uint64_t each = lines ? packet_bytes<LL128>(step.bytes) / unit_bytes : units_of(step.bytes);
    most = std::max(most, each * step.batch);
  }
  return most;
}

}  // namespace chorale::lowering
