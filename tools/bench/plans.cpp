#include "tools/bench/plans.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "chorale/compile.hpp"
#include "tools/findings.hpp"
#include "tools/run_options.hpp"
#include "tools/schedules/options.hpp"

namespace chorale::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* collectives[] = {"allreduce", "allgather", "reducescatter", "alltoall", "broadcast"};

/// "allreduce_ring" of "allreduce_ring_8.json".
std::string name_of(const fs::path& file, uint32_t ranks) {
  std::string name = file.stem().string();
  const std::string ending = "_" + std::to_string(ranks);
  if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name;
}

/// Of "allreduce_ring_b16", the algorithm with 16 instances: "allreduce_ring", and the setting; of
/// "allreduce_two_shot_ordered_b16" "allreduce_two_shot", and that it adds in the order of the ranks, too.
std::string algorithm_of(const std::string& name, dsl::Parameters::Settings& settings) {
  const size_t at = name.rfind("_b");
  if (at == std::string::npos || at + 2 == name.size()) return name;
  const std::string blocks = name.substr(at + 2);
  if (blocks.find_first_not_of("0123456789") != std::string::npos) return name;
  settings.try_emplace("instances", blocks);
  std::string algorithm = name.substr(0, at);
  constexpr std::string_view ordered = "_ordered";
  if (algorithm.ends_with(ordered)) {
    settings.try_emplace("rank_order", "true");
    algorithm.resize(algorithm.size() - ordered.size());
  }
  return algorithm;
}

/// The same algorithm in place, if it is a program that has the choice.
void add_in_place(std::vector<NamedPlan>& plans, const std::string& full_name, const Plan& plan,
                  dsl::Parameters::Settings settings, const std::vector<std::string>& allow) {
  const std::vector<dsl::RegisteredProgram> programs = dsl::programs();
  const auto known = [&](const std::string& name) {
    return std::any_of(programs.begin(), programs.end(), [&](const auto& one) { return one.name == name; });
  };
  const std::string name = known(full_name) ? full_name : algorithm_of(full_name, settings);
  if (plan.inplace || !known(name) || settings.contains("inplace")) return;
  const std::vector<dsl::Parameter> declared = describe_program(name).parameters;
  const bool has_choice =
      std::any_of(declared.begin(), declared.end(), [](const auto& one) { return one.name == "inplace"; });
  if (!has_choice) return;
  settings["inplace"] = "true";
  settings["ranks"] = std::to_string(plan.ranks());
  Built built = build_program(name, settings, {.target = {}, .allow = allow});
  if (built.diagnostics.empty()) plans.push_back({full_name, std::move(built.plan)});
}

}  // namespace

std::string shipped_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& folder :
       {self.parent_path() / CHORALE_SHIPPED_FROM_COMMAND, fs::path(CHORALE_SHIPPED)}) {
    if (fs::is_directory(folder, error)) return folder.string();
  }
  throw Failure(Exit::command_wrong, "the shipped plans are not found: there is no folder " CHORALE_SHIPPED,
                "name plan files, or install chorale");
}

std::vector<NamedPlan> shipped_plans(const std::string& collective, uint32_t ranks) {
  if (ranks == 0) {
    throw Failure(Exit::command_wrong,
                  "'" + collective + "' stands for all shipped plans of a number of ranks",
                  "say how many with --ranks");
  }
  const std::string folder = shipped_folder();
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(collective + "_") && name.ends_with(".json")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::set<uint32_t> others;
  std::vector<NamedPlan> plans;
  for (const fs::path& file : files) {
    Plan plan = load_plan(file.string());
    if (plan.collective != collective) continue;
    if (plan.ranks() != ranks) {
      others.insert(plan.ranks());
      continue;
    }
    if (report(plan, chorale::check(plan)))
      throw Failure(Exit::plan_wrong, "a plan with findings is not run");
    plans.push_back({name_of(file, ranks), std::move(plan)});
  }
  if (!plans.empty()) return plans;
  std::vector<std::string> numbers;
  for (const uint32_t other : others) numbers.push_back(std::to_string(other));
  throw Failure(
      Exit::command_wrong,
      "no plan is shipped for " + collective + " of " + count(ranks, "rank") + ", only of " + join(numbers),
      "name algorithms, which are compiled for --ranks: chorale list");
}

bool names_collective(const std::string& what) {
  return std::find(std::begin(collectives), std::end(collectives), what) != std::end(collectives);
}

std::vector<NamedPlan> find_plans(const std::vector<std::string>& words, const Wanted& common, uint32_t ranks,
                                  const std::vector<std::string>& allow) {
  std::vector<NamedPlan> plans;
  for (const std::string& word : words) {
    if (names_collective(word)) {
      if (!common.set.empty() || !common.name.empty()) {
        throw Failure(Exit::command_wrong,
                      "--set and --name are for programs; '" + word + "' stands for shipped plans",
                      "name the algorithm: chorale list");
      }
      for (NamedPlan& shipped : shipped_plans(word, ranks)) {
        plans.push_back(std::move(shipped));
        add_in_place(plans, plans.back().name, Plan(plans.back().plan), {}, {});
      }
    } else {
      const bool program = names_program(word);
      Plan plan = plan_for({word, common.name, common.set}, ranks, allow);
      refuse_schedule(plan, "chorale bench",
                      "chorale run times host schedules, and bench_overlap compares them");
      const std::string name = program ? plan.name : name_of(word, plan.ranks());
      plans.push_back({name, plan});
      if (program) add_in_place(plans, name, plan, parse_settings(common.set), allow);
    }
    if (ranks == 0) ranks = plans.front().plan.ranks();
  }
  return plans;
}

}  // namespace chorale::tools
