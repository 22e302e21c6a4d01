// A schedule with several lanes in which nothing overlaps is correct, but not what its author wants.

#include <fmt/format.h>

#include <algorithm>

#include "checks.hpp"
#include "compiler/host/report.hpp"
#include "execution.hpp"

namespace chorale::host {
namespace {

bool moves(const Step& step) {
  return step.kind == StepKind::put || step.kind == StepKind::get || step.kind == StepKind::carry;
}

/// By rank, what transfers bring there.
std::vector<std::vector<Box>> arrivals(const Concrete& all) {
  std::vector<std::vector<Box>> boxes(all.ranks);
  for (uint32_t rank = 0; rank < all.ranks; ++rank) {
    for (const Step& step : all.steps[rank]) {
      if (step.kind == StepKind::put) boxes[step.peer].push_back(step.writes[0]);
      if (step.kind == StepKind::get) boxes[rank].push_back(step.writes[0]);
      for (const ConcreteTransfer& one : step.transfers)
        if (!one.is_send) boxes[rank].push_back(one.box);
    }
  }
  return boxes;
}

/// Whether a call adds to what has arrived, where it lies: a sum that is handed on. Transfers have to wait
/// for it.
bool adds_to(const std::vector<Box>& arrived, const Step& call) {
  const auto is_written = [&](const Box& box) {
    return std::any_of(call.writes.begin(), call.writes.end(),
                       [&](const Box& one) { return one.overlaps(box); });
  };
  return std::any_of(arrived.begin(), arrived.end(), is_written);
}

}  // namespace

void check_overlap(const Schedule& schedule, const Concrete& made, Diagnostics& out) {
  const Concrete all = expand_movers(made);
  const std::vector<std::vector<Box>> arrived = arrivals(all);
  const Execution order(all, Queues::by_lane, 1);
  bool several_lanes = false, could = false;
  std::optional<std::pair<uint32_t, uint32_t>> last_call, last_move;  // with the chain that serialises them
  uint32_t of_rank = 0;
  for (uint32_t rank = 0; rank < all.ranks; ++rank) {
    const std::vector<Step>& steps = all.steps[rank];
    std::vector<uint32_t> calls, transfers;
    for (uint32_t k = 0; k < steps.size(); ++k) {
      several_lanes |= steps[k].lane != 0;
      if (steps[k].kind == StepKind::call && !adds_to(arrived[rank], steps[k])) calls.push_back(k);
      if (moves(steps[k])) transfers.push_back(k);
    }
    if (calls.size() < 2 || transfers.empty()) continue;
    could = true;
    for (const uint32_t call : calls) {
      for (const uint32_t move : transfers) {
        const Event one{rank, call, 0}, other{rank, move, 0};
        if (!order.before(one, other) && !order.before(other, one)) return;
        if (!last_call && order.before(one, other)) {
          last_call = {rank, call};
          last_move = {rank, move};
          of_rank = rank;
        }
      }
    }
  }
  if (!several_lanes || !could || !last_call) return;
  const Step &call = all.steps[of_rank][last_call->second], &move = all.steps[of_rank][last_move->second];
  Diagnostic* finding =
      report(out, schedule, "overlap", move.at,
             fmt::format("serialised: the transfer on {} waits for the {} on {}, and so does every other",
                         where(of_rank, move), call.name, where(of_rank, call)),
             "fork the lanes in a loop in front and join them in the body, or the other way round: with both "
             "in one body a turn waits "
             "for the one before it");
  note(finding, schedule, call.at, "the compute that it waits for");
}

}  // namespace chorale::host
