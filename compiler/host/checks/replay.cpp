// Runs that follow each other without a barrier, recorded once.

#include <fmt/format.h>

#include "checks.hpp"
#include "compiler/host/report.hpp"
#include "execution.hpp"

namespace chorale::host {

namespace {

/// A flag is posted again only when who posts knows that it was taken, over two runs: a post of a flag that
/// is set would be lost.
void in_turns(const Schedule& schedule, const Concrete& made, Diagnostics& out) {
  const Execution order(made, Queues::by_lane, 2);
  std::vector<std::vector<Event>> posts(made.flags.size()), takes(made.flags.size());
  for (uint32_t run = 0; run < 2; ++run) {
    for (uint32_t rank = 0; rank < made.ranks; ++rank) {
      for (uint32_t k = 0; k < made.steps[rank].size(); ++k) {
        const Step& step = made.steps[rank][k];
        if (step.kind == StepKind::post) posts[step.flag].push_back({rank, k, run});
        if (step.kind == StepKind::take) takes[step.flag].push_back({rank, k, run});
      }
    }
  }
  for (size_t flag = 0; flag < posts.size(); ++flag) {
    for (size_t k = 0; k + 1 < posts[flag].size(); ++k) {
      const Event &take = takes[flag][k], &again = posts[flag][k + 1];
      if (order.before(take, again)) continue;
      const Step &post = made.steps[again.rank][again.step], &taken = made.steps[take.rank][take.step];
      Diagnostic* finding =
          report(out, schedule, "replay", post.at,
                 fmt::format("{} is posted on {} while it may still be set{}: one of the two posts is lost",
                             made.flags[flag].name, where(again.rank, post),
                             again.run != take.run ? " by the run before" : ""),
                 "post it again only after the taker has answered");
      note(finding, schedule, taken.at,
           fmt::format("the take that may come later, on {}", where(take.rank, taken)));
      break;
    }
  }
}

}  // namespace

void check_replay(const Schedule& schedule, const Concrete& made, Diagnostics& out) {
  for (const std::vector<Step>& steps : made.steps) {
    for (const Step& step : steps) {
      if (step.kind != StepKind::take || made.flags[step.flag].kind != Flag::Kind::counter) continue;
      report(out, schedule, "replay", step.at,
             fmt::format("the counter {} is compared with a value that a graph records once: from the second "
                         "replay on it is reached too early",
                         made.flags[step.flag].name),
             "make the flag binary: who takes it clears it");
    }
  }
  std::vector<int64_t> balance(made.flags.size());
  for (const std::vector<Step>& steps : made.steps)
    for (const Step& step : steps) {
      if (step.kind == StepKind::post) ++balance[step.flag];
      if (step.kind == StepKind::take) --balance[step.flag];
    }
  for (size_t flag = 0; flag < balance.size(); ++flag) {
    const ConcreteFlag& one = made.flags[flag];
    if (!balance[flag]) continue;
    report(out, schedule, "replay", one.at,
           fmt::format(
               "rank {} posts {} at rank {} {} than it is taken: the next run begins with it set wrongly",
               one.poster, one.name, one.taker, balance[flag] > 0 ? "more often" : "less often"));
  }
  if (!out.empty()) return;
  in_turns(schedule, made, out);
}

}  // namespace chorale::host
