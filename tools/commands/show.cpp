// chorale show prints a plan in words.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "chorale/schedule/dump.hpp"
#include "chorale/schedule/names.hpp"
#include "tools/command.hpp"
#include "tools/findings.hpp"
#include "tools/programs.hpp"
#include "tools/shown.hpp"

namespace chorale::tools {
namespace {

struct ShowArguments {
  std::string plan, stage;
  std::vector<std::string> set;
  int64_t rank = -1, threadblock = -1, ranks = 0;
};

/// Prints a host schedule at one of the stages between its author's text and the steps that run.
void show_schedule(const Plan& plan, const std::string& stage, int64_t ranks) {
  if (!plan.extension.schedule)
    throw Failure(Exit::command_wrong, "plan " + plan.name + " has no host schedule");
  const schedule::Schedule& schedule = *plan.extension.schedule;
  if (stage == "layout") {
    if (schedule.layout.empty())
      throw Failure(Exit::command_wrong, "plan " + plan.name + " was written in the explicit form");
    std::cout << schedule::dump_layout(plan.name, schedule);
    return;
  }
  if (stage == "schedule") {
    std::cout << schedule::dump(plan.name, schedule);
    return;
  }
  if (ranks == 0) ranks = schedule.ranks.empty() ? 2 : schedule.ranks.back();
  Diagnostics findings;
  const schedule::Concrete made = schedule::concretise(schedule, {.ranks = uint32_t(ranks)}, findings);
  if (report(plan, findings))
    throw Failure(Exit::plan_wrong, "a schedule with findings is not shown as a rank runs it",
                  "--stage schedule shows it as it was written");
  if (stage == "movers") {
    std::cout << schedule::dump(plan.name, schedule::expand_movers(made), 0);
    return;
  }
  const std::string number = stage.starts_with("rank:") ? stage.substr(5) : "";
  const bool digits =
      !number.empty() && number.size() < 6 && number.find_first_not_of("0123456789") == number.npos;
  if (!digits || std::stol(number) >= ranks) {
    const std::vector<std::string> stages = {"layout", "schedule", "movers", "rank:0"};
    throw Failure(Exit::command_wrong,
                  number.empty() ? unknown("stage", stage, stages)
                                 : "there is no stage '" + stage + "' of " + count(uint64_t(ranks), "rank"),
                  "stages are layout, schedule, movers and rank:0 to rank:" + std::to_string(ranks - 1));
  }
  std::cout << schedule::dump(plan.name, made, uint32_t(std::stol(number)));
}

}  // namespace

Action command::show(CLI::App& app) {
  auto options = std::make_shared<ShowArguments>();
  app.add_option("plan", options->plan,
                 "A plan file, or a source in C++ (*.cpp) or Python (*.py); - is standard input")
      ->required();
  declare_sources_set(app, options->set);
  app.add_option("--rank", options->rank, "Only this rank")
      ->transform(whole_number(0, 65535, "from 0"))
      ->type_name("N");
  app.add_option("--threadblock", options->threadblock, "Only this thread block of each rank")
      ->transform(whole_number(0, 65535, "from 0"))
      ->type_name("N");
  app.add_option("--stage", options->stage,
                 "The stage of a host schedule: layout, schedule, movers (of rank 0), or rank:N")
      ->type_name("STAGE");
  app.add_option("--ranks", options->ranks, "Number of ranks for which a host schedule is unrolled")
      ->transform(whole_number(1, schedule::most_ranks))
      ->type_name("N");
  return [options] {
    need_source(options->set, {options->plan});
    const Plan plan = load_plan_or_source(options->plan, parse_settings(options->set));
    const bool of_schedule = !options->stage.empty() || (plan.extension.schedule && plan.gpus.empty());
    if (of_schedule && (options->rank >= 0 || options->threadblock >= 0)) {
      throw Failure(Exit::command_wrong,
                    "--rank and --threadblock are for thread blocks, which are not shown",
                    "--stage rank:N shows a host schedule as a rank runs it");
    }
    if (!of_schedule && options->ranks)
      throw Failure(Exit::command_wrong,
                    "--ranks is for host schedules; '" + plan.name + "' is shown as a plan");
    if (of_schedule) {
      show_schedule(plan, options->stage.empty() ? "schedule" : options->stage, options->ranks);
      return Exit::well;
    }
    if (options->rank >= int64_t(plan.ranks())) {
      throw Failure(Exit::command_wrong, "there is no rank " + std::to_string(options->rank) +
                                             ": the plan has " + count(plan.ranks(), "rank") + ", from 0");
    }
    const std::span<const Gpu> gpus =
        options->rank < 0 ? std::span(plan.gpus) : std::span(plan.gpus).subspan(size_t(options->rank), 1);
    const auto wanted = [&](const ThreadBlock& block) {
      return options->threadblock < 0 || block.id == options->threadblock;
    };
    const bool found = std::any_of(gpus.begin(), gpus.end(), [&](const Gpu& gpu) {
      return std::any_of(gpu.threadblocks.begin(), gpu.threadblocks.end(), wanted);
    });
    if (!found && options->threadblock >= 0) {
      throw Failure(Exit::command_wrong, "there is no thread block " + std::to_string(options->threadblock) +
                                             (options->rank < 0 ? " in any rank" : " in this rank"));
    }
    show_plan(plan, std::cout);
    for (const Gpu& gpu : gpus) {
      show_rank(gpu, std::cout);
      for (const ThreadBlock& block : gpu.threadblocks) {
        if (wanted(block)) show_block(plan, gpu, block, std::cout);
      }
    }
    return Exit::well;
  };
}

}  // namespace chorale::tools
