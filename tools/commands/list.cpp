// chorale list lists the shipped algorithms, plans and host schedules.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>

#include "chorale/shipped_name.hpp"
#include "tools/command.hpp"
#include "tools/completion.hpp"
#include "tools/plans.hpp"
#include "tools/programs.hpp"
#include "tools/schedule_options.hpp"
#include "tools/words.hpp"

namespace chorale::tools {
namespace {

namespace fs = std::filesystem;

/// Returns the names of the shipped plan files, without ".json", sorted.
std::vector<std::string> shipped_files() { return names_in(shipped_folder()); }

/// Splits the name of a shipped plan's file, which is NAME_RANKS.
struct FileName {
  std::string name;
  int ranks = 0;
};
FileName parts_of(const std::string& file) {
  const size_t bar = file.rfind('_');
  return {file.substr(0, bar), bar == file.npos ? 0 : std::atoi(file.c_str() + bar + 1)};
}

void print_description(const dsl::Description& program) {
  std::cout << program.name << "  (" << program.file << ")\n";
  if (!program.summary.empty()) std::cout << "  " << program.summary << '\n';
  std::cout << parameters_help(program);
}

void show_program(const std::string& name) {
  print_description(describe_program(name));
  const Built built = build_program(name, {}, {.target = {}, .allow = {"proofs"}});
  std::cout << "  by default: " << headline(built.plan) << ", " << message_words(built.plan) << '\n';
  std::vector<std::string> files;
  for (const std::string& file : shipped_files()) {
    const FileName parts = parts_of(file);
    if (shipped_name(parts.name, parts.ranks).program == name) files.push_back(file);
  }
  if (!files.empty()) std::cout << "  shipped plans: " << join(files) << '\n';
}

void show_file(const std::string& file) {
  const Plan plan = load_plan((fs::path(shipped_folder()) / (file + ".json")).string());
  const ShippedName made = shipped_name(parts_of(file).name, int(plan.ranks()));
  std::vector<std::string> words = {"chorale", "compile", made.program};
  for (const auto& [key, value] : made.settings) {
    words.push_back("--set");
    words.push_back(key + "=" + value);
  }
  std::cout << file << "  (shipped plan)\n  " << headline(plan) << ", " << message_words(plan)
            << "\n  made by: " << shell_line(words) << "\n  file: " << shipped_folder() << '/' << file
            << ".json\n";
}

void show_schedule(const std::string& name) {
  const std::string file = shipped_schedule(name);
  const Plan plan = load_plan(file);
  const schedule::Schedule& schedule = *plan.extension.schedule;
  std::cout << name << "  (host schedule)\n  for " << fmt::format("{}", fmt::join(schedule.ranks, ", "))
            << " ranks\n";
  for (const schedule::Param& param : schedule.params) {
    std::cout << "  " << param.name << '=' << (param.value ? std::to_string(*param.value) : "")
              << "  (set by --param)\n";
  }
  const uint32_t ranks = schedule_ranks(schedule, 0);
  for (const schedule::ConcreteTensor& tensor : unroll(plan, ranks, {}, schedule::Mover::ce_put).tensors) {
    if (tensor.role == schedule::Role::temp) continue;
    std::cout << fmt::format("  {} {}: {} {} on each of {} ranks\n",
                             schedule::role_names[size_t(tensor.role)], tensor.name, dtype_name(tensor.dtype),
                             fmt::join(tensor.shape, " x "), ranks);
  }
  std::cout << "  run by: chorale run " << name << "\n  file: " << file << '\n';
}

/// Returns the names that show_one() takes.
std::vector<std::string> all_names() {
  std::vector<std::string> names = algorithm_names();
  for (const std::vector<std::string>& more : {shipped_schedules(), shipped_files()})
    names.insert(names.end(), more.begin(), more.end());
  return names;
}

void show_one(const std::string& name) {
  const std::vector<std::string> programs = algorithm_names(), files = shipped_files(),
                                 schedules = shipped_schedules();
  const auto is_one_of = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (is_one_of(programs)) return show_program(name);
  if (is_one_of(schedules)) return show_schedule(name);
  if (is_one_of(files)) return show_file(name);
  refuse_collective(name);
  throw Failure(Exit::command_wrong, unknown("algorithm, plan or host schedule", name, all_names()),
                "chorale list names those that are shipped");
}

void show_all(bool only_names) {
  bool first = true;
  for (const dsl::RegisteredProgram& registered : dsl::programs()) {
    if (only_names) {
      std::cout << registered.name << '\n';
      continue;
    }
    std::cout << (first ? "" : "\n");
    print_description(describe_program(registered.name));
    first = false;
  }
  if (!only_names) std::cout << "\nhost schedules: " << join(shipped_schedules()) << '\n';
}

}  // namespace

Action command::list(CLI::App& app) {
  struct ListArguments {
    std::string name;
    bool only_names = false;
  };
  auto options = std::make_shared<ListArguments>();
  CLI::Option* const name =
      app.add_option("name", options->name, "Show only this algorithm, shipped plan or host schedule")
          ->type_name("NAME");
  suggest(name, all_names);
  app.add_flag("--names", options->only_names, "Print only the names of algorithms, one per line")
      ->excludes(name);
  return [options] {
    options->name.empty() ? show_all(options->only_names) : show_one(options->name);
    return Exit::well;
  };
}

}  // namespace chorale::tools
