// This check warns about a schedule that has several streams but overlaps nothing. It is correct, but not
// what its author wants.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "checks.hpp"
#include "compiler/schedule/report.hpp"
#include "execution.hpp"

namespace chorale::schedule {
namespace {

bool moves(const Step& step) {
  return step.kind == StepKind::put || step.kind == StepKind::get || step.kind == StepKind::exchange;
}

/// Returns the boxes that each rank receives by transfers.
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

/// Returns whether a call adds to received data in place, as in a sum that is passed on. Transfers must wait
/// for such a call.
bool adds_to(const std::vector<Box>& arrived, const Step& call) {
  const auto is_written = [&](const Box& box) {
    return std::any_of(call.writes.begin(), call.writes.end(),
                       [&](const Box& one) { return one.overlaps(box); });
  };
  return std::any_of(arrived.begin(), arrived.end(), is_written);
}

/// Returns whether a step is compute of its rank. Sums of collectives do not count, because they are part of
/// their transfer.
bool computes(const Schedule& schedule, const Step& step) {
  const auto is_made = [&](const Box& box) { return box.tensor >= schedule.tensors.size(); };
  return step.kind == StepKind::call && std::none_of(step.reads.begin(), step.reads.end(), is_made);
}

/// Names one of the loops around a step: its number among all executed loops, and the turn.
struct Turn {
  uint32_t loop = 0;
  int64_t value = 0;
};

/// Returns, by step, the loops around it, the outermost first. When the value of a variable gets smaller, the
/// next loop of that variable begins.
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

/// Describes one execution of a loop, and the steps in it.
struct Loop {
  size_t level = 0;  ///< number of loops around it
  bool several_streams = false;
  std::vector<uint32_t> calls, transfers;
};

/// Holds a call and a transfer of a later turn that waits for it.
using Serialised = std::optional<std::pair<uint32_t, uint32_t>>;

class Overlap {
 public:
  Overlap(const Schedule& schedule, const Concrete& all, Diagnostics& out)
      : s_(schedule), all_(all), arrived_(arrivals(all)), order_(all, Queues::by_stream, 1), out_(out) {}

  void all() {
    for (uint32_t rank = 0; rank < all_.ranks; ++rank) {
      const std::vector<std::vector<Turn>> around = loops_around(all_.steps[rank]);
      for (const auto& [number, loop] : loops(rank, around)) {
        if (!loop.several_streams) continue;
        if (const Serialised found = serialised(rank, loop, around)) warn(rank, found->first, found->second);
      }
    }
  }

 private:
  /// Returns the loops by number.
  std::map<uint32_t, Loop> loops(uint32_t rank, const std::vector<std::vector<Turn>>& around) const {
    std::map<uint32_t, Loop> all;
    const std::vector<Step>& steps = all_.steps[rank];
    for (uint32_t k = 0; k < steps.size(); ++k) {
      const bool is_call = computes(s_, steps[k]) && !adds_to(arrived_[rank], steps[k]);
      for (size_t level = 0; level < around[k].size(); ++level) {
        Loop& loop = all[around[k][level].loop];
        loop.level = level;
        loop.several_streams |= steps[k].stream != 0;
        if (is_call) loop.calls.push_back(k);
        if (moves(steps[k])) loop.transfers.push_back(k);
      }
    }
    return all;
  }

  /// Returns nothing if some transfer and some compute of the loop can overlap. For example, a sum that is
  /// passed on can travel while the next addend of the same turn is computed.
  Serialised serialised(uint32_t rank, const Loop& loop, const std::vector<std::vector<Turn>>& around) const {
    const auto turn = [&](uint32_t step) { return around[step][loop.level].value; };
    Serialised found;
    for (const uint32_t call : loop.calls) {
      for (const uint32_t move : loop.transfers) {
        const Event one{rank, call, 0}, other{rank, move, 0};
        const bool first = order_.before(one, other);
        if (!first && !order_.before(other, one)) return {};
        if (first && turn(call) != turn(move) && !found) found = {call, move};
      }
    }
    // If only one turn computes, other turns may depend on its result.
    if (loop.calls.empty() || turn(loop.calls.front()) == turn(loop.calls.back())) return {};
    return found;
  }

  void warn(uint32_t rank, uint32_t call_at, uint32_t move_at) {
    const Step &call = all_.steps[rank][call_at], &move = all_.steps[rank][move_at];
    Diagnostic* finding = report(
        out_, s_, "overlap", move.at,
        fmt::format("serialised: the transfer on {} waits for the {} on {}, and so does every other",
                    where(rank, move), call.name, where(rank, call)),
        call.stream == move.stream
            ? "put the transfers on a stream of their own, and let it wait for the calls with after"
            : "fork the streams in a loop in front and join them in the body, or the other way round: with "
              "both in one body a turn waits for the one before it");
    note(finding, s_, call.at, "the transfer waits for this call");
  }

  const Schedule& s_;
  const Concrete& all_;
  const std::vector<std::vector<Box>> arrived_;
  const Execution order_;
  Diagnostics& out_;
};

}  // namespace

void check_overlap(const Schedule& schedule, const Concrete&, const Concrete& expanded, Diagnostics& out) {
  Overlap(schedule, expanded, out).all();
}

}  // namespace chorale::schedule
