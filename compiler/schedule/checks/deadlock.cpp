// This check requires every wait to end.

#include <fmt/format.h>

#include <algorithm>

#include "checks.hpp"
#include "compiler/schedule/collectives.hpp"
#include "compiler/schedule/report.hpp"
#include "execution.hpp"

namespace chorale::schedule {
namespace {

std::string what(const Concrete& made, const Event& event) {
  const Step& step = made.steps[event.rank][event.step];
  if (step.kind == StepKind::take) return "the take of " + made.flags[step.flag].name;
  if (step.kind != StepKind::group && step.kind != StepKind::exchange)
    return "the " + std::string(step_names[size_t(step.kind)]);
  std::string text = step.transfers.size() == 1 ? "the " : "the group of a ";
  const char* comma = "";
  for (const ConcreteTransfer& one : step.transfers) {
    text += fmt::format("{}{} {}", comma, one.is_send ? "send to rank" : "receive from rank", one.peer);
    comma = " and a ";
  }
  return text;
}

/// Says which launch some rank lacks, if ranks have different numbers of launches.
void note_launches(Diagnostic* finding, const Schedule& schedule, const Concrete& made) {
  std::vector<std::vector<Event>> launches(made.ranks);
  for (uint32_t rank = 0; rank < made.ranks; ++rank) {
    for (uint32_t k = 0; k < made.steps[rank].size(); ++k)
      if (is_launch(made.steps[rank][k])) launches[rank].push_back({rank, k});
  }
  const auto fewer = [](const auto& one, const auto& other) { return one.size() < other.size(); };
  const auto [least, most] = std::minmax_element(launches.begin(), launches.end(), fewer);
  if (least->size() == most->size()) return;
  const Event& extra = (*most)[least->size()];
  const Step& step = made.steps[extra.rank][extra.step];
  note(finding, schedule, step.at,
       fmt::format("{} on {} is launch {} of {}, but rank {} has {}", what(made, extra),
                   where(extra.rank, step), least->size() + 1, most->size(), least - launches.begin(),
                   least->empty() ? "none" : "only " + number(least->size())));
}

/// Reports the steps that never end.
/// \returns whether the schedule ends
bool ends(const Schedule& schedule, const Concrete& made, Queues queues, const char* check, const char* how,
          Diagnostics& out) {
  const Execution execution(made, queues, 1);
  const std::vector<Event>& blocked = execution.blocked();
  if (blocked.empty()) return true;
  const auto line = [&](const Event& event) { return made.steps[event.rank][event.step].at; };
  const auto place = [&](const Event& event) {
    return where(event.rank, made.steps[event.rank][event.step]);
  };
  std::string help;
  for (const Event& event : blocked) {
    const Step& step = made.steps[event.rank][event.step];
    if (step.kind == StepKind::group && step.transfers.size() == 1)
      help = "put the send and the receive of an exchange into one group, so that they run together";
    if (is_launch(step) && help.empty()) {
      help = "every rank takes part in every launch, in the same order";
      if (step.kind != StepKind::launch) help += "; via plan every group is a launch, so use another mover";
    }
    if (step.kind == StepKind::take && help.empty())
      help = "post before you take: the peer may be waiting for something after the take";
  }
  Diagnostic* finding =
      report(out, schedule, check, line(blocked[0]),
             fmt::format("{} on {} never ends{}", what(made, blocked[0]), place(blocked[0]), how), help);
  constexpr size_t most_notes = 8;
  for (size_t k = 1; k < blocked.size() && k <= most_notes; ++k)
    note(finding, schedule, line(blocked[k]),
         fmt::format("{} on {} does not end either", what(made, blocked[k]), place(blocked[k])));
  const auto launches = [&](const Event& event) { return is_launch(made.steps[event.rank][event.step]); };
  if (std::any_of(blocked.begin(), blocked.end(), launches)) note_launches(finding, schedule, made);
  return false;
}

/// Returns whether the author has chosen a copy engine for every transfer. For transfers of collectives,
/// authors cannot choose it.
bool only_copy_engines(const std::vector<Op>& ops) {
  return std::all_of(ops.begin(), ops.end(), [](const Op& op) {
    const auto by_engine = [](const Transfer& one) {
      return one.mover == Mover::ce_put || one.mover == Mover::ce_get;
    };
    return std::all_of(op.transfers.begin(), op.transfers.end(), by_engine) && only_copy_engines(op.body) &&
           only_copy_engines(op.orelse);
  });
}

/// Returns the schedule with the transfers of collectives as a rendezvous, in which each end waits for the
/// other, because an executor may do them in this way.
Concrete with_rendezvous(Concrete made) {
  for (std::vector<Step>& steps : made.steps) {
    for (Step& step : steps) {
      for (ConcreteTransfer& one : step.transfers)
        if (one.tag == collective_tag) one.mover = made.pairs[one.pair].mover = Mover::automatic;
    }
  }
  return expand_movers(made);
}

}  // namespace

void check_deadlock(const Schedule& schedule, const Concrete& made, const Concrete& expanded,
                    Diagnostics& out) {
  if (!ends(schedule, made, Queues::by_stream, "deadlock", "", out)) return;
  ends(schedule, expanded, Queues::by_stream, "deadlock", " with its movers", out);
}

/// A rendezvous blocks all that follows in its queue. If the author has asked for copy engines, there is
/// none.
void check_one_queue(const Schedule& schedule, const Concrete& made, const Concrete& expanded,
                     Diagnostics& out) {
  const char* const how = " if all streams of a rank are one queue, which CUDA may make of them";
  const auto all_end = [&](const Concrete& one) {
    return ends(schedule, one, Queues::one_each, "one_queue", how, out);
  };
  const bool ended = only_copy_engines(schedule.body) ? all_end(with_rendezvous(made)) : all_end(made);
  if (ended) all_end(expanded);
}

}  // namespace chorale::schedule
