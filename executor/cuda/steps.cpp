#include "steps.hpp"

#include <algorithm>

namespace chorale::cuda {
namespace {

bool moves_data(TapeKind kind) { return kind >= TapeKind::copy; }

/// Returns the bytes of a step, in multiples of `grain`, that exist at all its places and are aligned if what
/// is passed is aligned.
uint64_t whole_bytes(const Step& step, uint64_t grain) {
  uint64_t bytes = step.step.bytes;
  for (const TapePlace& place : step.plain) {
    if ((place.at & ~(TapePlace::in | TapePlace::out)) % unit_bytes != 0 || place.at == 0) return 0;
    bytes = std::min(bytes, place.valid);
  }
  return bytes / grain * grain;
}

uint8_t passed_by(const Step& step) {
  uint8_t passed = 0;
  for (const TapePlace& place : step.plain) {
    if (place.at & TapePlace::in) passed |= 1;
    if (place.at & TapePlace::out) passed |= 2;
  }
  return passed;
}

/// Returns true if all threads of the block meet in a step by itself, so that a sync beside it orders nothing
/// more: the step orders what comes before it before what comes after it, and touches no data itself.
bool meets(TapeKind kind) {
  switch (kind) {
    case TapeKind::sync:
    case TapeKind::post:
    case TapeKind::await:
    case TapeKind::await_relaxed:
    case TapeKind::drain:
    case TapeKind::acquire:
    case TapeKind::release:
    case TapeKind::barrier:
    case TapeKind::push:
      return true;
    default:
      return false;
  }
}

/// Returns true if all threads of the block meet at the end of a step.
bool ends_in_meeting(TapeKind kind) {
  return meets(kind) || kind == TapeKind::unpack || kind == TapeKind::reduce_packets;
}

/// Posts next to each other leave together, and waits next to each other wait together.
bool joins(const TapeStep& before, const TapeStep& next) {
  if (before.kind != next.kind) return false;
  return next.kind == TapeKind::post || next.kind == TapeKind::post_relaxed || next.kind == TapeKind::await ||
         next.kind == TapeKind::await_relaxed;
}

/// Returns true if two pieces of memory may overlap. A plan in place has its input and output in one buffer,
/// so the one that is passed may be the other.
bool may_touch(const TapePlace& a, uint64_t a_bytes, const TapePlace& b, uint64_t b_bytes) {
  constexpr uint64_t tags = TapePlace::in | TapePlace::out;
  if ((a.at & tags) != (b.at & tags)) return (a.at & tags) != 0 && (b.at & tags) != 0;
  // Banks differ by more than the length of a piece, and by the same for both pieces.
  return a.at < b.at + b_bytes && b.at < a.at + a_bytes;
}

bool is_batchable(const Step& step) {
  const TapeStep& of = step.step;
  // A step that waits and sends could wait for what another one of the batch has yet to send.
  return of.whole && (of.kind == TapeKind::copy || (of.kind == TapeKind::unpack && of.packet_sinks == 0));
}

bool independent(const Step& a, const Step& b) {
  const uint64_t bytes = a.step.bytes;
  const size_t a_sources = a.step.kind == TapeKind::copy ? 1 : 0,
               b_sources = b.step.kind == TapeKind::copy ? 1 : 0;
  for (size_t one = 0; one < a.plain.size(); ++one) {
    for (size_t other = 0; other < b.plain.size(); ++other) {
      const bool written = one >= a_sources || other >= b_sources;
      if (written && may_touch(a.plain[one], bytes, b.plain[other], bytes)) return false;
    }
  }
  return true;
}

}  // namespace

void split_tails(std::vector<Step>& steps, PacketForm packet) {
  std::vector<Step> split;
  for (Step& step : steps) {
    if (!moves_data(step.step.kind)) {
      split.push_back(std::move(step));
      continue;
    }
    if (step.step.bytes == 0) continue;
    step.step.passed = passed_by(step);
    const bool lines = packet == PacketForm::ll128 && !step.packets.empty();
    const uint64_t whole = whole_bytes(step, lines ? packet_payload<LL128> : unit_bytes);
    if (whole == 0) {
      split.push_back(std::move(step));
      continue;
    }
    step.step.whole = 1;
    if (whole == step.step.bytes) {
      split.push_back(std::move(step));
      continue;
    }
    Step tail = step;
    tail.step.whole = 0;
    tail.step.bytes -= whole;
    for (TapePlace& place : tail.plain) {
      place.at += whole;
      if (place.valid != unlimited) place.valid -= whole;
    }
    for (TapePlace& place : tail.packets) place.at += lines ? packet_offset<LL128>(whole) : 2 * whole;
    step.step.bytes = whole;
    split.push_back(std::move(step));
    split.push_back(std::move(tail));
  }
  steps = std::move(split);
}
void tidy(std::vector<Step>& steps) {
  std::vector<Step> kept;
  for (size_t at = 0; at < steps.size(); ++at) {
    Step& step = steps[at];
    if (step.step.kind == TapeKind::sync) {
      const bool last = at + 1 == steps.size();
      if (last || meets(steps[at + 1].step.kind)) continue;
      if (kept.empty() || ends_in_meeting(kept.back().step.kind)) continue;
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
uint16_t batch_from(const std::vector<Step>& steps, size_t at, size_t end) {
  constexpr size_t most = 32;
  if (!is_batchable(steps[at])) return 1;
  size_t next = at + 1;
  for (; next < end && next - at < most; ++next) {
    if (!is_batchable(steps[next]) || steps[next].step.kind != steps[at].step.kind ||
        steps[next].step.bytes != steps[at].step.bytes ||
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

bool is_exchange(const std::vector<Step>& steps) {
  for (const Step& of : steps) {
    const TapeStep& step = of.step;
    switch (step.kind) {
      case TapeKind::sync:
        break;
      case TapeKind::copy:
      case TapeKind::unpack:
        if (!step.whole) return false;
        break;
      case TapeKind::reduce_packets:
        if (!step.whole) return false;
        if (ReduceOp(step.reduce_op) != ReduceOp::sum && ReduceOp(step.reduce_op) != ReduceOp::avg)
          return false;
        break;
      default:
        return false;
    }
  }
  return true;
}

uint64_t busy_threads(const std::vector<Step>& steps, PacketForm packet) {
  uint64_t most = 0;
  for (const Step& of : steps) {
    const TapeStep& step = of.step;
    if (!moves_data(step.kind)) {
      most = std::max<uint64_t>(most, step.n);
      continue;
    }
    const bool lines = packet == PacketForm::ll128 && !of.packets.empty();
    const uint64_t each = lines ? packet_bytes<LL128>(step.bytes) / unit_bytes : units_of(step.bytes);
    most = std::max(most, each * step.batch);
  }
  return most;
}

}  // namespace chorale::cuda
