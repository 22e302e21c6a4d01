// This check allows runs to follow each other without a barrier, even if they are recorded once in a graph.

#include <fmt/format.h>

#include "checks.hpp"
#include "compiler/schedule/report.hpp"
#include "execution.hpp"

namespace chorale::schedule {

namespace {

/// Lists, for each flag, the steps of two runs that post or take it, in the order in which the host enqueues
/// them.
struct Turns {
  explicit Turns(const Concrete& made) : posts(made.flags.size()), takes(made.flags.size()) {
    for (uint32_t run = 0; run < 2; ++run) {
      for (uint32_t rank = 0; rank < made.ranks; ++rank) {
        for (uint32_t k = 0; k < made.steps[rank].size(); ++k) {
          const Step& step = made.steps[rank][k];
          if (step.kind == StepKind::post) posts[step.flag].push_back({rank, k, run});
          if (step.kind == StepKind::take) takes[step.flag].push_back({rank, k, run});
        }
      }
    }
  }
  std::vector<std::vector<Event>> posts, takes;
};

class Flags {
 public:
  /// \param made  after expand_movers(), because the flags of a group order less than a rendezvous of its
  ///   transfers
  Flags(const Schedule& schedule, const Concrete& made, Diagnostics& out)
      : s_(schedule), made_(made), order_(made, Queues::by_stream, 2), turns_(made), out_(out) {}

  /// Checks the author's flags. The flags of movers are posted and taken once per run, and the runs of a rank
  /// follow each other.
  void all() {
    for (size_t flag = 0; flag < made_.flags.size(); ++flag)
      if (made_.flags[flag].use == ConcreteFlag::Use::author && takes_in_turns(flag)) posts_in_turns(flag);
  }

 private:
  const Step& step(const Event& event) const { return made_.steps[event.rank][event.step]; }

  /// Checks that no two takes wait at the same time, because either could get the post. Takes of two
  /// different runs never do.
  bool takes_in_turns(size_t flag) {
    const std::vector<Event>& takes = turns_.takes[flag];
    for (size_t k = 0; k + 1 < takes.size(); ++k) {
      const Event &first = takes[k], &second = takes[k + 1];
      if (first.run != second.run || order_.before(first, second)) continue;
      Diagnostic* finding = report(out_, s_, "replay", step(second).at,
                                   fmt::format("{} is taken on {} while another take of it may still wait: "
                                               "chance decides which of the two gets a post",
                                               made_.flags[flag].name, where(second.rank, step(second))),
                                   "order the streams with after, or give each its own flag");
      note(finding, s_, step(first).at, fmt::format("the other take, on {}", where(first.rank, step(first))));
      return false;
    }
    return true;
  }

  /// Checks over two runs that a rank posts a flag again only when it knows that the flag was taken. A post
  /// of a flag that is still set would be lost.
  void posts_in_turns(size_t flag) {
    const std::vector<Event>& posts = turns_.posts[flag];
    for (size_t k = 0; k + 1 < posts.size(); ++k) {
      const Event &take = turns_.takes[flag][k], &again = posts[k + 1];
      if (order_.before(take, again)) continue;
      Diagnostic* finding =
          report(out_, s_, "replay", step(again).at,
                 fmt::format("{} is posted on {} while it may still be set{}: one of the two posts is lost",
                             made_.flags[flag].name, where(again.rank, step(again)),
                             again.run != take.run ? " by the run before" : ""),
                 "post it again only after the taker has answered");
      note(finding, s_, step(take).at,
           fmt::format("the take that may come later, on {}", where(take.rank, step(take))));
      return;
    }
  }

  const Schedule& s_;
  const Concrete& made_;
  const Execution order_;
  const Turns turns_;
  Diagnostics& out_;
};

}  // namespace

void check_replay(const Schedule& schedule, const Concrete& made, const Concrete& expanded,
                  Diagnostics& out) {
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
  Flags(schedule, expanded, out).all();
}

}  // namespace chorale::schedule
