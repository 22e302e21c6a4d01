#include "placement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "chorale/collective.hpp"
#include "chorale/device/vec.hpp"
#include "chorale/divided_up.hpp"
#include "chorale/error.hpp"
#include "chorale/storage.hpp"

namespace chorale::lowering {

Placement::Parts Placement::parts_of(uint64_t bytes, const Layout& layout, uint64_t part_distance) {
  if (part_distance == 0 || bytes == layout.segment_bytes) return {1, bytes, 0};
  return {bytes / layout.segment_bytes, layout.segment_bytes, part_distance - layout.segment_bytes};
}

Move Placement::Parts::copy(void* to, uint64_t to_gap, const void* from, uint64_t from_gap) const {
  if (to_gap == 0 && from_gap == 0) return {to, from, all()};
  return {to, from, bytes, n, bytes + to_gap, bytes + from_gap};
}

Placement::Placement(const Plan& plan, uint32_t rank, const Layout& layout, uint64_t part_distance)
    : in_(parts_of(layout.sizes.input, layout, part_distance)),
      out_(parts_of(layout.sizes.output, layout, part_distance)),
      rank_(rank),
      plan_in_place_(plan.inplace) {
  one_storage_ = is_one_storage(plan, rank);
  const CollectiveInfo& collective = collective_info(plan.collective);
  output_is_complete_ = collective.fills_outputs() && plan.extension.post.empty();
  const bool is_root = plan.extension.root == rank;
  needs_input_ = !collective.only_root_sends() || is_root;
  needs_output_ = !collective.only_root_receives() || is_root || uses(plan, rank, BufferKind::output);
  const auto place = [&](const Parts& part, uint64_t& at, uint64_t& copy_at) {
    copy_at = rank * part.bytes;
    at = part_distance != 0 ? rank * part_distance : copy_at;
  };
  if (collective.input_is_part()) place(in_, in_at_, in_copy_at_);
  scatters_ = collective.output_is_part();
  if (scatters_) place(out_, out_at_, out_copy_at_);
  in_reached_ = reached_by_peers(plan, rank, BufferKind::input);
  out_reached_ = reached_by_peers(plan, rank, BufferKind::output);
}

/// Returns whether a part that peers access is aligned if the whole buffer is.
bool Placement::parts_are_aligned() const {
  return (!in_reached_ || in_at_ % unit_bytes == 0) && (!out_reached_ || out_at_ % unit_bytes == 0);
}

Placed Placement::place(const void* in, void* out, const StagingMemory& staging, bool proved_in_place) const {
  const uint64_t in_bytes = in_.all(), out_bytes = out_.all();
  char* const user_in = static_cast<char*>(const_cast<void*>(in));
  char* const user_out = static_cast<char*>(out);
  const bool lacks_out = !out && out_bytes && needs_output_;
  if (lacks_out || (!in && in_bytes && needs_input_))
    throw UsageError(fmt::format("rank {}: {} is null", rank_, lacks_out ? "out" : "in"));
  const bool in_place = in_bytes && out_bytes && in && out && user_in + out_at_ == user_out + in_at_;
  if (!in_place && in && out && in_bytes && out_bytes && user_in < user_out + out_span() &&
      user_out < user_in + in_span()) {
    throw UsageError(fmt::format(
        "rank {}: input [{}, {}) and output [{}, {}) overlap, but are not in place: in place means that "
        "input begins {} bytes and output {} bytes into the larger of the two",
        rank_, fmt::ptr(user_in), fmt::ptr(user_in + in_span()), fmt::ptr(user_out),
        fmt::ptr(user_out + out_span()), in_at_, out_at_));
  }

  Placed placed;
  placed.in = user_in;
  placed.out = user_out;
  placed.in_gap = in_.gap;
  placed.out_gap = out_.gap;
  const auto copy_input = [&](char* to) {
    placed.in = to;
    placed.in_gap = 0;
    placed.before[0] = in_.copy(to, 0, in, in_.gap);
  };
  bool together = false;
  // Otherwise the input is copied below, as if the plan were not right in place.
  const bool may_be_together = one_storage_ || !staging.aligned || parts_are_aligned();
  if ((plan_in_place_ || proved_in_place) && in_place && may_be_together) {
    together = true;
  } else if (one_storage_ && !scatters_) {
    placed.in = user_out + in_at_;
    placed.before[0] = in_.copy(placed.in, in_.gap, in, in_.gap);
    together = true;
  } else if (one_storage_ && in_bytes) {
    // The plan writes its result over its input, as in a reduce-scatter, and the call must not change the
    // input. A rank that needs no input has the memory all the same.
    copy_input(staging.shared ? staging.shared() : staging.own());
    placed.out = placed.in + out_copy_at_;
    placed.after = {user_out, placed.out, out_bytes};
  } else if (in_place) {
    copy_input(staging.shared ? staging.shared() : staging.own());
  }
  if (staging.shared && (in_reached_ || out_reached_)) place_for_peers(placed, in, out, together, staging);
  placed.in_span = in_.span(placed.in_gap);
  placed.out_span = out_.span(placed.out_gap);
  return placed;
}

void Placement::place_for_peers(Placed& placed, const void* in, void* out, bool one_storage,
                                const StagingMemory& staging) const {
  if (one_storage) {
    char* const storage = std::min(placed.in - in_at_, placed.out - out_at_);
    if (staging.reachable(storage, std::max(in_span(), out_span()))) return;
    placed.staged = true;
    placed.in = staging.shared() + in_copy_at_;
    placed.in_gap = 0;
    placed.before[0] = in_.copy(placed.in, 0, in, in_.gap);
    copy_output(placed, out, staging.shared() + out_copy_at_);
    return;
  }
  const char* const first = placed.in;
  const uint64_t in_bytes = in_.all(), in_span = in_.span(placed.in_gap);
  if (in_reached_ && in_bytes && placed.in && !staging.reachable(placed.in, in_span)) {
    placed.staged = true;
    placed.in = staging.shared();
    placed.before[0] = in_.copy(placed.in, 0, first, placed.in_gap);
    placed.in_gap = 0;
  }
  if (out_reached_ && out_.all() && !staging.reachable(placed.out, out_span())) {
    placed.staged = true;
    copy_output(
        placed, out,
        staging.shared() + (staging.aligned ? divided_up(in_bytes, unit_bytes) * unit_bytes : in_bytes));
  }
}

void Placement::copy_output(Placed& placed, void* out, char* to) const {
  placed.out = to;
  placed.out_gap = 0;
  if (!output_is_complete_) placed.before[1] = out_.copy(to, 0, out, out_.gap);
  placed.after = out_.copy(out, out_.gap, to, 0);
}

}  // namespace chorale::lowering
