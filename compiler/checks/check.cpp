// This file runs the checks of the pass table.

#include <stdexcept>

#include "chorale/checks.hpp"
#include "chorale/schedule/concrete.hpp"

namespace chorale {
namespace {

struct Check {
  void (*run)(const Plan&, Diagnostics&);
};

constexpr Check checks[] = {
#define CHORALE_CHECK(name, summary) {pass::name},
#include "chorale/passes.def"
};

}  // namespace

Diagnostics check(const Plan& plan) {
  if (plan.only_rank) {
    throw std::invalid_argument("plan '" + plan.name + "' was loaded for rank " +
                                std::to_string(*plan.only_rank) +
                                " alone; to check it, load it for all ranks");
  }
  Diagnostics findings;
  if (plan.extension.schedule) findings = schedule::check_unbound(*plan.extension.schedule);
  if (plan.extension.schedule && plan.gpus.empty()) return findings;
  for (const Check& check : checks) {
    check.run(plan, findings);
    // Later checks rely on what earlier ones establish.
    if (!findings.empty()) break;
  }
  return findings;
}

}  // namespace chorale
