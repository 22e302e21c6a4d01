// This file runs the table of checks of host schedules.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "checks/checks.hpp"
#include "lower/layout.hpp"
#include "report.hpp"

namespace chorale::schedule {
namespace {

using Check = decltype(&check_shapes);

constexpr Check checks[] = {
#define CHORALE_HOST_CHECK(name, summary) check_##name,
#include "chorale/schedule/checks.def"
};

/// Limits the number of steps times the streams of all ranks. Each step stores how far every stream is, so
/// larger checks would take gigabytes.
constexpr uint64_t most_known = uint64_t(1) << 25;

void limit_size(const Concrete& made, Diagnostics& out) {
  uint64_t steps = 0;
  for (const std::vector<Step>& of_rank : made.steps) steps += of_rank.size();
  const uint64_t streams = made.ranks * made.streams.size();
  if (!steps || streams <= most_known / steps) return;
  out.push_back(
      {"bounds",
       {},
       {},
       fmt::format("{} operations on {} streams of all ranks are too many to be checked", steps, streams),
       {},
       "leave out that number of ranks"});
}

bool leaves_movers_open(const std::vector<Op>& ops) {
  return std::any_of(ops.begin(), ops.end(), [](const Op& op) {
    return op.kind == OpKind::collective ||
           std::any_of(op.transfers.begin(), op.transfers.end(),
                       [](const Transfer& one) { return one.mover == Mover::automatic; }) ||
           leaves_movers_open(op.body) || leaves_movers_open(op.orelse);
  });
}

}  // namespace

Diagnostics check(const Schedule& schedule, const Values& params, Mover automatic) {
  Diagnostics findings;
  if (schedule.ranks.empty())
    findings.push_back({"tags", {}, {}, "the schedule does not say for how many ranks it is", {}, {}});
  check_layout(schedule, findings);
  if (!findings.empty()) return findings;
  for (const uint32_t ranks : schedule.ranks) {
    const Concrete made =
        concretise(schedule, {.ranks = ranks, .params = params, .automatic = automatic}, findings);
    if (findings.empty()) limit_size(made, findings);
    const Concrete expanded = findings.empty() ? expand_movers(made) : Concrete();
    for (const Check check : checks) {
      // Later checks rely on what earlier ones have established.
      if (!findings.empty()) break;
      check(schedule, made, expanded, findings);
    }
    if (findings.empty()) continue;
    note_ranks(findings, ranks);
    break;
  }
  return findings;
}

Diagnostics check_unbound(const Schedule& schedule) {
  Diagnostics findings = check(schedule);
  if (!findings.empty() || !leaves_movers_open(schedule.body)) return findings;
  // Movers order different things. With ce_get, a sender knows that the receiver has what it sent. With
  // ce_put, it knows that after its own put. Via a plan, it knows only that the receiver has begun its own
  // part of the exchange. Groups that do not fit into a plan are refused only if they are bound to one, so
  // that check leaves the mover open.
  for (const auto& [checked, name] :
       {std::pair(Mover::ce_get, Mover::ce_get), std::pair(Mover::automatic, Mover::plan)}) {
    findings = check(schedule, {}, checked);
    if (findings.empty()) continue;
    for (Diagnostic& finding : findings)
      finding.notes.push_back(
          {{},
           {},
           fmt::format("with {} as the mover of transfers that leave it open", mover_names[size_t(name)])});
    break;
  }
  return findings;
}

}  // namespace chorale::schedule
