#include "chorale/schedule/place.hpp"

#include "chorale/schedule/collective.hpp"

namespace chorale::schedule {
namespace {

/// Returns whether the peer accesses the view of a transfer. A launched plan connects its memory itself.
bool reaches(const Transfer& one) {
  switch (one.mover) {
    case Mover::ce_get:
      return one.is_send;
    case Mover::automatic:
    case Mover::ce_put:
      return !one.is_send;
    case Mover::plan:
      return false;
  }
  return false;
}

/// Returns whether peers write to the result of a collective. They do not if it only has sums, because the
/// addends of sums have separate windows.
bool is_reached(const CollectiveInfo& kind) {
  return !kind.reduces() || !(kind.only_root_receives() || kind.output_is_part());
}

void walk(const std::vector<Op>& ops, std::vector<Tensor>& tensors) {
  for (const Op& op : ops) {
    for (const Transfer& one : op.transfers)
      if (reaches(one)) tensors[one.view.tensor].space = Space::window;
    if (op.kind == OpKind::collective && is_reached(collective_row(op.name)))
      tensors[op.writes[0].tensor].space = Space::window;
    walk(op.body, tensors);
    walk(op.orelse, tensors);
  }
}

}  // namespace

void place(Schedule& schedule) { walk(schedule.body, schedule.tensors); }

}  // namespace chorale::schedule
