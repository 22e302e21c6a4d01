#include "tools/schedule_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <system_error>

#include "tools/findings.hpp"
#include "tools/programs.hpp"

namespace chorale::tools {

void ScheduleOptions::declare(CLI::App& app) {
  app.add_option("--param", param, "Host schedules: a parameter, as NAME=VALUE; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--plan", plan,
                 "Host schedules: the plan that the launch NAME runs, as NAME=PLAN, where PLAN is a plan "
                 "file or a shipped name; may be repeated. Default: the shipped plan called NAME")
      ->type_name("NAME=PLAN")
      ->allow_extra_args(false);
  app.add_option("--mover", mover,
                 "Host schedules: the mover of transfers that do not name one; default ce_put")
      ->check(one_of("mover", {std::begin(schedule::mover_names) + 1, std::end(schedule::mover_names)}))
      ->type_name("MOVER");
}

schedule::Values ScheduleOptions::params(const Plan& plan) const {
  schedule::Values values;
  std::vector<std::string> known;
  for (const schedule::Param& one : plan.extension.schedule->params) known.push_back(one.name);
  for (const auto& [name, value] : parse_settings(param, "--param")) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw Failure(Exit::command_wrong, unknown("parameter", name, known),
                    "schedule '" + plan.name + "' has " + (known.empty() ? "none" : join(known)));
    }
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, values[name]);
    if (error == std::errc() && stop == end) continue;
    const bool large = error == std::errc::result_out_of_range && stop == end;
    throw Failure(Exit::command_wrong, "parameter '" + name + "' is '" + value +
                                           "', but must be a whole number" +
                                           (large ? " from -2^63 to 2^63 - 1" : ""));
  }
  return values;
}

schedule::Mover ScheduleOptions::automatic() const {
  const auto& names = schedule::mover_names;
  const auto found = std::find(std::begin(names), std::end(names), mover);
  return mover.empty() ? schedule::Mover::ce_put : schedule::Mover(found - std::begin(names));
}

uint32_t schedule_ranks(const schedule::Schedule& schedule, uint32_t ranks) {
  if (ranks) return ranks;
  return schedule.ranks.empty() ? 2 : *std::max_element(schedule.ranks.begin(), schedule.ranks.end());
}

schedule::Concrete unroll(const Plan& plan, uint32_t ranks, const schedule::Values& params,
                          schedule::Mover automatic) {
  Diagnostics findings;
  schedule::Concrete made = schedule::concretise(
      *plan.extension.schedule, {.ranks = ranks, .params = params, .automatic = automatic}, findings);
  if (report(plan, findings)) throw Failure(Exit::plan_wrong, "a plan with findings is not run");
  return made;
}

void refuse_schedule(const Plan& plan, const std::string& what, const std::string& help) {
  if (!plan.extension.schedule || !plan.gpus.empty()) return;
  throw Failure(Exit::command_wrong,
                what + " is for plans of thread blocks, and '" + plan.name + "' is a host schedule", help);
}

}  // namespace chorale::tools
