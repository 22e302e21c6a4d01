#include "placement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "chorale/collective.hpp"
#include "chorale/device/vec.hpp"
#include "chorale/divided_up.hpp"
#include "chorale/error.hpp"
#include "chorale/storage.hpp"

namespace chorale::lowering {

Placement::Placement(const Plan& plan, uint32_t rank, const Layout& layout)
    : sizes_(layout.sizes), rank_(rank), plan_in_place_(plan.inplace) {
  one_storage_ = is_one_storage(plan, rank);
  const CollectiveInfo& collective = collective_info(plan.collective);
  output_is_complete_ = collective.fills_outputs() && plan.extension.post.empty();
  const bool is_root = plan.extension.root == rank;
  needs_input_ = !collective.only_root_sends() || is_root;
  needs_output_ = !collective.only_root_receives() || is_root || uses(plan, rank, BufferKind::output);
  if (collective.input_is_part()) in_at_ = rank * sizes_.input;
  scatters_ = collective.output_is_part();
  if (scatters_) out_at_ = rank * sizes_.output;
  in_reached_ = reached_by_peers(plan, rank, BufferKind::input);
  out_reached_ = reached_by_peers(plan, rank, BufferKind::output);
}

/// Returns whether a part that peers access is aligned if the whole buffer is.
bool Placement::parts_are_aligned() const {
  return (!in_reached_ || in_at_ % unit_bytes == 0) && (!out_reached_ || out_at_ % unit_bytes == 0);
}

Placed Placement::place(const void* in, void* out, const StagingMemory& staging, bool proved_in_place) const {
  const auto [in_bytes, out_bytes] = sizes_;
  char* const user_in = static_cast<char*>(const_cast<void*>(in));
  char* const user_out = static_cast<char*>(out);
  const bool lacks_out = !out && out_bytes && needs_output_;
  if (lacks_out || (!in && in_bytes && needs_input_))
    throw UsageError(fmt::format("rank {}: {} is null", rank_, lacks_out ? "out" : "in"));
  const bool in_place = in_bytes && out_bytes && in && out && user_in + out_at_ == user_out + in_at_;
  if (!in_place && in && out && in_bytes && out_bytes && user_in < user_out + out_bytes &&
      user_out < user_in + in_bytes) {
    throw UsageError(fmt::format(
        "rank {}: input [{}, {}) and output [{}, {}) overlap, but are not in place: in place means that "
        "input begins {} bytes and output {} bytes into the larger of the two",
        rank_, fmt::ptr(user_in), fmt::ptr(user_in + in_bytes), fmt::ptr(user_out),
        fmt::ptr(user_out + out_bytes), in_at_, out_at_));
  }

  Placed placed;
  placed.in = user_in;
  placed.out = user_out;
  bool together = false;
  // Otherwise the input is copied below, as if the plan were not right in place.
  const bool may_be_together = one_storage_ || !staging.aligned || parts_are_aligned();
  if ((plan_in_place_ || proved_in_place) && in_place && may_be_together) {
    together = true;
  } else if (one_storage_ && !scatters_) {
    placed.in = user_out + in_at_;
    placed.before[0] = {placed.in, in, in_bytes};
    together = true;
  } else if (one_storage_ && in_bytes) {
    // The plan writes its result over its input, as in a reduce-scatter, and the call must not change the
    // input. A rank that needs no input has the memory all the same.
    placed.in = staging.shared ? staging.shared() : staging.own();
    placed.out = placed.in + out_at_;
    placed.before[0] = {placed.in, in, in_bytes};
    placed.after = {user_out, placed.out, out_bytes};
  } else if (in_place) {
    placed.in = staging.shared ? staging.shared() : staging.own();
    placed.before[0] = {placed.in, in, in_bytes};
  }
  if (staging.shared && (in_reached_ || out_reached_)) place_for_peers(placed, in, out, together, staging);
  return placed;
}

void Placement::place_for_peers(Placed& placed, const void* in, void* out, bool one_storage,
                                const StagingMemory& staging) const {
  const auto [in_bytes, out_bytes] = sizes_;
  if (one_storage) {
    char* const storage = std::min(placed.in - in_at_, placed.out - out_at_);
    if (staging.reachable(storage, std::max(in_bytes, out_bytes))) return;
    placed.staged = true;
    placed.in = staging.shared() + in_at_;
    placed.out = staging.shared() + out_at_;
    if (!output_is_complete_) placed.before[1] = {placed.out, out, out_bytes};
    placed.before[0] = {placed.in, in, in_bytes};
    placed.after = {out, placed.out, out_bytes};
    return;
  }
  const char* const first = placed.in;
  if (in_reached_ && in_bytes && placed.in && !staging.reachable(placed.in, in_bytes)) {
    placed.staged = true;
    placed.in = staging.shared();
    placed.before[0] = {placed.in, first, in_bytes};
  }
  if (out_reached_ && out_bytes && !staging.reachable(placed.out, out_bytes)) {
    placed.staged = true;
    placed.out =
        staging.shared() + (staging.aligned ? divided_up(in_bytes, unit_bytes) * unit_bytes : in_bytes);
    if (!output_is_complete_) placed.before[1] = {placed.out, out, out_bytes};
    placed.after = {out, placed.out, out_bytes};
  }
}

}  // namespace chorale::lowering
