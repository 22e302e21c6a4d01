#include "tools/schedules/launched.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tools/command.hpp"
#include "tools/run_options.hpp"

namespace chorale::tools {
namespace {

std::set<std::string> launched_names(const schedule::Concrete& made) {
  std::set<std::string> names;
  for (const auto& steps : made.steps)
    for (const schedule::Step& step : steps)
      if (step.kind == schedule::StepKind::launch) names.insert(step.name);
  return names;
}

/// Maps the names of launches to the words that name their plans.
std::map<std::string, std::string> by_name(const std::vector<std::string>& words) {
  std::map<std::string, std::string> all;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == 0 || equals == word.npos || equals + 1 == word.size())
      throw Failure(Exit::command_wrong, "--plan takes NAME=PLAN, not '" + word + "'");
    if (!all.emplace(word.substr(0, equals), word.substr(equals + 1)).second)
      throw Failure(Exit::command_wrong, "--plan gives '" + word.substr(0, equals) + "' twice");
  }
  return all;
}

uint64_t elements(const schedule::Concrete& made, const schedule::Box& box) {
  return box.bytes / dtype_size(made.tensors[box.tensor].dtype);
}

/// Checks that input and output are cut into as many parts as the collective needs, all of one size.
void check_sizes(const schedule::Concrete& made, const BlockPlans& plans) {
  for (uint32_t rank = 0; rank < made.ranks; ++rank) {
    for (const schedule::Step& step : made.steps[rank]) {
      if (step.kind != schedule::StepKind::launch || !plans.contains(step.name)) continue;
      const Plan& plan = plans.at(step.name);
      Segmentation parts = segmentation(plan);
      parts = {std::max<uint64_t>(parts.input, 1), std::max<uint64_t>(parts.output, 1)};
      const uint64_t in = elements(made, step.reads[0]), out = elements(made, step.writes[0]);
      const bool whole = in % parts.input == 0 && out % parts.output == 0;
      if (whole && in / parts.input == out / parts.output) continue;
      throw Failure(
          Exit::command_wrong,
          fmt::format("launch of '{}', {}: {} has {} elements and {} {}, but plan '{}' ({}) takes {} to {}",
                      step.name, where(rank, step), schedule::text(made, step.reads[0]), in,
                      schedule::text(made, step.writes[0]), out, plan.name, plan.collective,
                      count(parts.input, "part"), count(parts.output, "part")),
          "launch it with views of these sizes, or give another --plan");
    }
  }
}

}  // namespace

BlockPlans launched_plans(const Plan& schedule, const schedule::Concrete& made,
                          const std::vector<std::string>& given, const std::vector<std::string>& allow,
                          MissingPlans missing) {
  const std::set<std::string> names = launched_names(made);
  const std::map<std::string, std::string> said = by_name(given);
  for (const auto& [name, what] : said) {
    if (names.count(name)) continue;
    const std::vector<std::string> all(names.begin(), names.end());
    throw Failure(Exit::command_wrong,
                  all.empty() ? fmt::format("schedule '{}' launches no plans, but --plan gives '{}'",
                                            schedule.name, name)
                              : unknown("launched plan", name, all),
                  all.empty() ? "" : fmt::format("schedule '{}' launches {}", schedule.name, join(all)));
  }
  BlockPlans plans;
  for (const std::string& name : names) {
    const auto found = said.find(name);
    const bool known = found != said.end() || is_registered(name);
    if (!known && missing == MissingPlans::leave_out) continue;
    if (!known)
      throw Failure(Exit::command_wrong,
                    fmt::format("the schedule launches '{}', but no plan of that name is shipped", name),
                    fmt::format("give it: --plan {}=FILE", name));
    const std::string& what = found == said.end() ? name : found->second;
    Plan plan = plan_for({.what = what, .name = {}, .set = {}}, made.ranks, allow);
    if (plan.extension.schedule && plan.gpus.empty())
      throw Failure(Exit::command_wrong,
                    fmt::format("--plan {}={}: '{}' is a host schedule, and has no thread blocks", name, what,
                                plan.name));
    plans.emplace(name, std::move(plan));
  }
  check_sizes(made, plans);
  return plans;
}

}  // namespace chorale::tools
