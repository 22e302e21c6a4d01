// A schedule with several lanes in which nothing overlaps is correct, but not what its author wants.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

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

/// The compute of a rank: not the sums of collectives, which are part of their transfer.
bool computes(const Schedule& schedule, const Step& step) {
  const auto is_made = [&](const Box& box) { return box.tensor >= schedule.tensors.size(); };
  return step.kind == StepKind::call && std::none_of(step.reads.begin(), step.reads.end(), is_made);
}

/// One of the loops around a step: which one of all that are gone through, and its turn.
struct Turn {
  uint32_t loop = 0;
  int64_t value = 0;
};

/// By step, the loops around it, the outermost first. Loops of one variable follow each other where its value
/// goes down.
std::vector<std::vector<Turn>> loops_around(const std::vector<Step>& steps) {
  std::vector<std::vector<Turn>> all;
  uint32_t loops = 0;
  for (size_t k = 0; k < steps.size(); ++k) {
    std::vector<Turn>& mine = all.emplace_back();
    bool same = k > 0;
    for (size_t level = 0; level < steps[k].turn.size(); ++level) {
      const auto& [variable, value] = steps[k].turn[level];
      same = same && level < all[k - 1].size() && steps[k - 1].turn[level].first == variable &&
             steps[k - 1].turn[level].second <= value;
      mine.push_back({same ? all[k - 1][level].loop : ++loops, value});
      same = same && all[k - 1][level].value == value;
    }
  }
  return all;
}

bool in_different_turns(const std::vector<Turn>& one, const std::vector<Turn>& other) {
  for (size_t level = 0; level < std::min(one.size(), other.size()); ++level) {
    if (one[level].loop != other[level].loop) return false;
    if (one[level].value != other[level].value) return true;
  }
  return false;
}

}  // namespace

void check_overlap(const Schedule& schedule, const Concrete&, const Concrete& expanded, Diagnostics& out) {
  const std::vector<std::vector<Box>> arrived = arrivals(expanded);
  const Execution order(expanded, Queues::by_lane, 1);
  bool several_lanes = false;
  std::optional<std::pair<Event, Event>> serialised;  // a call, and a transfer of a later turn
  for (uint32_t rank = 0; rank < expanded.ranks; ++rank) {
    const std::vector<Step>& steps = expanded.steps[rank];
    const std::vector<std::vector<Turn>> loops = loops_around(steps);
    std::vector<uint32_t> calls, transfers;
    for (uint32_t k = 0; k < steps.size(); ++k) {
      several_lanes |= steps[k].lane != 0;
      if (computes(schedule, steps[k]) && !adds_to(arrived[rank], steps[k])) calls.push_back(k);
      if (moves(steps[k])) transfers.push_back(k);
    }
    if (calls.size() < 2) continue;
    for (const uint32_t call : calls) {
      for (const uint32_t move : transfers) {
        const Event one{rank, call, 0}, other{rank, move, 0};
        if (!order.before(one, other) && !order.before(other, one)) return;
        if (!serialised && order.before(one, other) && in_different_turns(loops[call], loops[move]))
          serialised = {one, other};
      }
    }
  }
  if (!several_lanes || !serialised) return;
  const auto& [one, other] = *serialised;
  const Step &call = expanded.steps[one.rank][one.step], &move = expanded.steps[other.rank][other.step];
  Diagnostic* finding =
      report(out, schedule, "overlap", move.at,
             fmt::format("serialised: the transfer on {} waits for the {} on {}, and so does every other",
                         where(other.rank, move), call.name, where(one.rank, call)),
             "fork the lanes in a loop in front and join them in the body, or the other way round: with both "
             "in one body a turn waits "
             "for the one before it");
  note(finding, schedule, call.at, "the compute that it waits for");
}

}  // namespace chorale::host
