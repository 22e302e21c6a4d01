#include "tools/plans.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <system_error>

#include "chorale/collective.hpp"
#include "chorale/compile.hpp"
#include "chorale/content_hash.hpp"
#include "chorale/shipped_name.hpp"
#include "chorale/usage_error.hpp"
#include "tools/command.hpp"
#include "tools/completion.hpp"
#include "tools/findings.hpp"
#include "tools/run_options.hpp"
#include "tools/schedule_options.hpp"

namespace chorale::tools {

namespace {

namespace fs = std::filesystem;

/// Returns "allreduce_ring" for "allreduce_ring_8.json".
std::string name_of(const fs::path& file, uint32_t ranks) {
  std::string name = file.stem().string();
  const std::string ending = "_" + std::to_string(ranks);
  if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name;
}

/// Adds the same algorithm in place, if the program offers it.
void add_in_place(std::vector<NamedPlan>& plans, const std::string& full_name, const Plan& plan,
                  dsl::Parameters::Settings settings, const std::vector<std::string>& allow) {
  const ShippedName shipped = shipped_name(full_name, int(plan.ranks()));
  const std::string& name = shipped.program;
  if (plan.inplace || !is_registered(name) || settings.contains("inplace")) return;
  settings.insert(shipped.settings.begin(), shipped.settings.end());
  if (!takes_parameter(name, "inplace")) return;
  settings["inplace"] = "true";
  Built built = build_program(name, settings, {.target = {}, .allow = allow});
  if (built.diagnostics.empty()) plans.push_back({full_name, std::move(built.plan), true});
}

/// Makes the plans of these names for this number of ranks. It skips algorithms that do not take this number.
std::vector<NamedPlan> made_as_shipped(const std::set<std::string>& names, uint32_t ranks) {
  std::vector<NamedPlan> plans;
  for (const std::string& name : names) {
    const ShippedName shipped = shipped_name(name, int(ranks));
    try {
      Built built = build_program(shipped.program, shipped.settings);
      if (built.diagnostics.empty()) plans.push_back({name, std::move(built.plan)});
    } catch (const Failure&) {
      continue;  // the algorithm does not take this number of ranks
    }
  }
  return plans;
}

}  // namespace

size_t count_distinct(std::span<const NamedPlan> plans) {
  std::set<std::pair<std::string, uint64_t>> distinct;
  for (const NamedPlan& named : plans) {
    if (!named.also_in_place) distinct.emplace(named.name, content_hash(named.plan));
  }
  return distinct.size();
}

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

namespace {

fs::path schedules_folder() {
  try {
    return fs::path(shipped_folder()) / "schedules";
  } catch (const Failure&) {
    return {};  // no plans are shipped
  }
}

}  // namespace

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> shipped_schedules() { return names_in(schedules_folder().string()); }

std::string shipped_schedule(const std::string& name) {
  const std::vector<std::string> names = shipped_schedules();
  if (std::find(names.begin(), names.end(), name) == names.end()) return "";
  return (schedules_folder() / (name + ".json")).string();
}

std::vector<NamedPlan> shipped_plans(const std::string& collective, uint32_t ranks) {
  if (ranks == 0) {
    throw Failure(Exit::command_wrong,
                  "'" + collective + "' stands for all shipped plans for one number of ranks",
                  "say how many with --ranks");
  }
  const std::string folder = shipped_folder();
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(collective + "_") && name.ends_with(".json")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::set<std::string> names;
  std::vector<NamedPlan> plans;
  for (const fs::path& file : files) {
    Plan plan = load_plan(file.string());
    // Plans with codecs change results, so they run only by name.
    if (plan.collective != collective || !plan.extension.codecs.empty()) continue;
    names.insert(name_of(file, plan.ranks()));
    if (plan.ranks() != ranks) continue;
    if (report(plan, chorale::check(plan)))
      throw Failure(Exit::plan_wrong, "a plan with findings is not run");
    plans.push_back({name_of(file, ranks), std::move(plan)});
  }
  if (plans.empty()) plans = made_as_shipped(names, ranks);
  if (plans.empty()) {
    throw Failure(Exit::command_wrong,
                  "no plan that is shipped for " + collective + " can be made for " + count(ranks, "rank"),
                  "chorale compile says why, of an algorithm: chorale list");
  }
  return plans;
}

std::vector<std::string> names_to_time() {
  std::vector<std::string> names = algorithm_names();
  names.insert(names.end(), collective_words().begin(), collective_words().end());
  return names;
}

std::vector<std::string> names_to_run() {
  std::vector<std::string> names = names_to_time(), schedules = shipped_schedules();
  names.insert(names.end(), schedules.begin(), schedules.end());
  return names;
}

std::span<const std::string> collective_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> shipped(std::begin(standard_collectives), std::end(standard_collectives));
    // No plan is shipped for a collective whose programs do different things.
    std::erase_if(shipped, [](const auto& word) { return collective_info(word).leaves_sender_open(); });
    return shipped;
  }();
  return words;
}

bool names_collective(const std::string& what) {
  const auto words = collective_words();
  return std::find(words.begin(), words.end(), what) != words.end();
}

void refuse_collective(const std::string& what) {
  if (!names_collective(what)) return;
  throw Failure(Exit::command_wrong, "'" + what + "' is a collective, but one plan is needed here",
                "name one of its plans, such as " + what + "_" + (what == "allreduce" ? "ring" : "direct") +
                    "; chorale list names all");
}

namespace {

/// Gives plans of different words different names: the file's whole name, or else the word itself. The plans
/// of a collective keep their names.
/// \param words  the word of each plan
void tell_apart(std::vector<NamedPlan>& plans, const std::vector<std::string>& words) {
  const std::vector<std::function<std::string(const std::string&)>> longer = {
      [](const std::string& word) { return fs::path(word).stem().string(); },
      [](const std::string& word) { return word; }};
  for (const auto& rename : longer) {
    std::map<std::string, std::set<std::string>> named;  // words, by name
    for (size_t at = 0; at < plans.size(); ++at) named[plans[at].name].insert(words[at]);
    for (size_t at = 0; at < plans.size(); ++at) {
      if (!plans[at].of_collective && named[plans[at].name].size() > 1) plans[at].name = rename(words[at]);
    }
  }
}

}  // namespace

std::vector<NamedPlan> find_plans(const std::vector<std::string>& words, const Wanted& common, uint32_t ranks,
                                  const std::vector<std::string>& allow, const char* command) {
  const uint32_t asked = ranks;
  std::vector<NamedPlan> plans;
  std::vector<std::string> word_of;  // by plan
  for (const std::string& word : words) {
    if (names_collective(word)) {
      if (!common.set.empty() || !common.name.empty()) {
        const dsl::Parameters::Settings settings = parse_settings(common.set);
        const auto asked_ranks = settings.find("ranks");
        throw Failure(
            Exit::command_wrong, "--set and --name are for programs; '" + word + "' stands for shipped plans",
            asked_ranks != settings.end() && settings.size() == 1 && common.name.empty()
                ? "say --ranks " + asked_ranks->second
                : "compile the program with its settings first, and name the file of the plan here: "
                  "chorale compile PROGRAM --set ... -o mine.json");
      }
      const size_t first = plans.size();
      for (NamedPlan& shipped : shipped_plans(word, ranks)) {
        plans.push_back(std::move(shipped));
        add_in_place(plans, plans.back().name, Plan(plans.back().plan), {}, {});
      }
      for (size_t at = first; at < plans.size(); ++at) plans[at].of_collective = true;
    } else {
      const bool program = names_program(word);
      // A program is compiled for the ranks of the first plan. A plan file has its own number of ranks.
      Plan plan = plan_for({word, common.name, common.set}, program ? ranks : asked, allow);
      refuse_schedule(plan, command, "chorale run times host schedules, and bench_overlap compares them");
      const std::string name = program ? plan.name : name_of(word, plan.ranks());
      if (ranks && plan.ranks() != ranks) {
        const std::string first = plans.empty() ? "" : plans.front().name;
        throw Failure(Exit::command_wrong,
                      "plan '" + (name == first ? word : name) + "' is for " + count(plan.ranks(), "rank") +
                          ", but plan '" + (name == first ? word_of.front() : first) + "' is for " +
                          std::to_string(ranks),
                      std::string(command) + " compares plans for one number of ranks");
      }
      plans.push_back({name, plan});
      if (program) add_in_place(plans, name, plan, parse_settings(common.set), allow);
    }
    word_of.resize(plans.size(), word);
    if (ranks == 0) ranks = plans.front().plan.ranks();
  }
  tell_apart(plans, word_of);
  return plans;
}

void keep_within(std::vector<NamedPlan>& plans, uint32_t most) {
  uint32_t fewest = UINT32_MAX;
  for (const NamedPlan& named : plans) fewest = std::min(fewest, named.plan.thread_blocks());
  std::erase_if(plans, [most](const NamedPlan& named) {
    return named.of_collective && named.plan.thread_blocks() > most;
  });
  if (!plans.empty()) return;
  throw Failure(Exit::command_wrong,
                "these plans have at least " + count(fewest, "thread block") + ", but the limit is " +
                    std::to_string(most),
                "--max-blocks sets another limit");
}

Machine machine_of(const std::string& file, const std::string& topology) {
  std::filesystem::path path = file;
  if (file.empty())
    path = std::filesystem::path(shipped_folder()).parent_path() / "machines" / "nvidia_h200.json";
  const auto read = [](const auto& load, const char* remedy) {
    try {
      return load();
    } catch (const UsageError& wrong) {
      throw Failure(Exit::command_wrong, wrong.what(), remedy);
    } catch (const std::runtime_error& unread) {
      throw Failure(Exit::command_wrong, unread.what());
    }
  };
  Machine machine =
      read([&] { return load_machine(path.string()); },
           "docs/simulation.md says what a machine file has; nvidia_h200.json beside the shipped plans is "
           "one to begin with");
  if (!topology.empty()) {
    machine.topology = read([&] { return load_topology(topology); },
                            "docs/topologies.md says which topologies there are, and how to write one");
  }
  return machine;
}

CLI::Option* declare_topology(CLI::App& app, std::string& value, const std::string& what) {
  CLI::Option* const option = app.add_option("--topology", value, what)->type_name("NAME_OR_FILE");
  suggest(option, [] {
    const auto names = shipped_topologies();
    return std::vector<std::string>(names.begin(), names.end());
  });
  return option;
}

}  // namespace chorale::tools
