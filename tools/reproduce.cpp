#include "tools/reproduce.hpp"

#include "chorale/finding.hpp"

namespace chorale::tools {
namespace {

constexpr uint64_t max_steps = uint64_t(1) << 21, max_steps_of_all = uint64_t(1) << 24;

bool expected(Finding::Kind found, Verdict::Kind seen) {
  switch (seen) {
    case Verdict::Kind::deadlock:
      return found == Finding::Kind::cycle || found == Finding::Kind::unanswered;
    case Verdict::Kind::wrong_result:
    case Verdict::Kind::overwrite_seen:
    case Verdict::Kind::late_write:
      return found == Finding::Kind::race || found == Finding::Kind::value;
    default:
      return false;
  }
}

}  // namespace

Reproduction reproduce(const Plan& plan, const Finding& finding, uint64_t schedules) {
  Reproduction outcome;
  if (finding.kind == Finding::Kind::undecided) return outcome;
  outcome.out_of_place = plan.inplace && !finding.setting.one_storage;
  Adversary adversary(plan,
                      {.in_place = plan.inplace && finding.setting.one_storage, .max_steps = max_steps});
  uint64_t steps = 0;
  for (uint64_t seed = 0; seed < schedules && steps < max_steps_of_all; ++seed) {
    const Verdict verdict = adversary.run(seed);
    steps += verdict.steps;
    ++outcome.schedules;
    if (verdict.kind == Verdict::Kind::refused) break;
    if (!expected(finding.kind, verdict.kind)) continue;
    outcome.verdict = verdict;
    break;
  }
  return outcome;
}

}  // namespace chorale::tools
