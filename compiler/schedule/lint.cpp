#include "chorale/schedule/lint.hpp"

#include <algorithm>

#include "checks/checks.hpp"
#include "report.hpp"

namespace chorale::schedule {

Diagnostics lint(const Schedule& schedule, const Values& params, Mover automatic,
                 const std::vector<std::string>& allow) {
  Diagnostics findings;
  if (std::find(allow.begin(), allow.end(), warning_names[0]) != allow.end()) return findings;
  for (const uint32_t ranks : schedule.ranks) {
    Diagnostics wrong;
    const Concrete made =
        concretise(schedule, {.ranks = ranks, .params = params, .automatic = automatic}, wrong);
    if (wrong.empty()) check_overlap(schedule, made, expand_movers(made), findings);
    note_ranks(findings, ranks);
    if (!findings.empty()) break;
  }
  return findings;
}

}  // namespace chorale::schedule
