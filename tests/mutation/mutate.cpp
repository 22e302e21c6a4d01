// mutate makes mistakes in right plans, and tests whether the checks find them. docs/mutation.md shows one of
// its runs.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>
#include <thread>

#include "chorale/adversary.hpp"
#include "chorale/compile.hpp"
#include "chorale/json.hpp"
#include "chorale/read_file.hpp"
#include "chorale/write_error.hpp"
#include "judged.hpp"
#include "reasons.hpp"
#include "report.hpp"
#include "tools/command.hpp"
#include "tools/version.hpp"

namespace chorale::mutation {
namespace {

using namespace chorale::tools;

struct MutateArguments {
  std::vector<std::string> paths, operators;
  uint32_t sample = 0, schedules = 1000, threads = 0;
  std::string seed = "1";
  std::string json, markdown, holes;
  bool resume = false;
};

Choice choice_of(const MutateArguments& options) {
  std::vector<std::string> names;
  for (const Operator& of : operators()) names.emplace_back(of.name);
  for (const std::string& word : options.operators) {
    if (std::find(names.begin(), names.end(), word) == names.end()) {
      throw Failure(Exit::command_wrong, unknown("operator", word, names), "mutate --help lists them");
    }
  }
  Choice choice;
  for (const Operator& of : operators()) {
    const std::vector<std::string>& wanted = options.operators.empty() ? names : options.operators;
    if (std::find(wanted.begin(), wanted.end(), of.name) != wanted.end()) choice.operators.push_back(&of);
  }
  choice.sample = options.sample;
  choice.seed = parse_seed(options.seed);
  choice.threads = options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  return choice;
}

/// Lists the kinds of mistakes for the help.
std::string list_operators() {
  std::string text = "Operators:\n";
  for (const Operator& of : operators()) text += fmt::format("  {:<22}{}\n", of.name, of.summary);
  return text;
}

/// Returns the command line with the options that change the results.
std::string words_of(const MutateArguments& options) {
  std::string text =
      "mutate " + (options.paths.size() < 4 ? join(options.paths) : count(options.paths.size(), "plan"));
  if (!options.operators.empty()) text += " --operators " + join(options.operators);
  if (options.sample) text += " --sample " + std::to_string(options.sample) + " --seed " + options.seed;
  return text + " --schedules " + std::to_string(options.schedules);
}

/// Gives the step after which a mutant counts as running without end, which is a failure.
constexpr uint64_t max_steps = uint64_t(1) << 24;

/// Returns the first schedule that fails.
std::optional<Failed> run_adversary(const Plan& plan, uint64_t schedules) {
  Adversary adversary(plan, {.max_steps = max_steps});
  const Verdict verdict = adversary.run_all(1, schedules);
  if (verdict.ok()) return {};
  return Failed{verdict.seed, std::string(name(verdict.kind)) + ": " + verdict.text};
}

Judge make_judge(const MutateArguments& options) {
  Judge judge;
  judge.check = [](const Plan& plan) {
    const Diagnostics findings = check(plan);
    return findings.empty() ? prove(plan) : findings;
  };
  judge.explain = find_reason;
  if (options.schedules) {
    judge.run = [schedules = options.schedules](const Plan& plan) { return run_adversary(plan, schedules); };
  }
  return judge;
}

/// Returns the reason why a plan's mutants would show nothing, if there is one.
std::optional<std::string> unfit(const Plan& plan, const Judge& judge) {
  if (plan.gpus.empty()) return "it is a host schedule, and mistakes are made in thread blocks";
  const Diagnostics before = judge.check(plan);
  if (!before.empty()) return "it is refused as it is: " + before[0].text + " [" + before[0].check + "]";
  if (plan.collective == "test") return "it promises no result, so that none is wrong";
  if (const std::optional<Failed> failed = judge.run ? judge.run(plan) : std::nullopt) {
    return fmt::format("schedule {} of it fails: {}", failed->seed, failed->text);
  }
  return {};
}

std::string hole_path(const std::string& folder, const std::string& plan, const Mutant& mutant) {
  return fmt::format("{}/{}.{}.{}.{}.{}.json", folder, plan, mutant.of->name, mutant.at.rank,
                     mutant.at.threadblock, mutant.at.op);
}

/// Reads the lines that an earlier run has left in a file, if there is one.
std::string read_lines(const std::string& path) {
  std::error_code hidden;
  if (!std::filesystem::exists(path, hidden)) return "";
  try {
    return read_file(path);
  } catch (const std::runtime_error& error) {
    throw Failure(Exit::command_wrong, error.what());
  }
}

Judged judged_before(const std::string& path, const std::string& lines) {
  try {
    return Judged(lines);
  } catch (const std::invalid_argument& error) {
    throw Failure(Exit::command_wrong, path + ": " + error.what(),
                  "--resume goes on with what mutate --json has written: name that file");
  }
}

Exit mutate_all(const MutateArguments& options) {
  if (options.resume && options.json.empty())
    throw Failure(Exit::command_wrong, "--resume goes on with the lines of a file", "name it with --json");
  std::vector<NamedFile> read;
  for (const std::string& path : options.paths) read.push_back({"", path});
  keep_apart(read, {{"--json", options.json}, {"--markdown", options.markdown}});
  need_writable(options.markdown);
  if (!options.holes.empty()) need_writable(options.holes + "/hole.json");
  Choice choice = choice_of(options);
  const Judge judge = make_judge(options);
  const std::string before = options.resume ? read_lines(options.json) : std::string();
  const Judged judged = judged_before(options.json, before);
  std::ofstream lines;
  if (!options.json.empty()) {
    // A run that was stopped in the middle of a line has left an incomplete line.
    const size_t whole = before.rfind('\n') + 1;  // npos + 1 is 0
    std::error_code error;
    if (whole != before.size()) std::filesystem::resize_file(options.json, whole, error);
    if (error)
      throw Failure(Exit::command_wrong, "cannot write " + options.json + ": " + write_error(error.value()));
    lines.open(options.json, options.resume ? std::ios::app : std::ios::out);
    if (!lines)
      throw Failure(Exit::command_wrong, "cannot write " + options.json + ": " + write_error(errno));
  }
  Tally tally;
  for (const std::string& path : options.paths) {
    const std::string name = std::filesystem::path(path).stem().string();
    const Plan plan = load(path);
    const std::optional<std::string> why = judged.begun(name) ? std::nullopt : unfit(plan, judge);
    if (why) {
      tally.leave_out(name, *why);
      std::cerr << name << ": left out, " << *why << '\n';
      continue;
    }
    choice.recall = [&](Mutant& mutant) { return judged.recall(name, mutant); };
    const std::vector<Mutant> mutants =
        mutate(plan, choice, judge, [&](const Mutant& mutant, const Plan& mutated) {
          if (lines.is_open() && !(lines << json_line(name, mutant) << '\n' << std::flush))
            throw Failure(Exit::command_wrong, "cannot write " + options.json + ": " + write_error(errno));
          if (mutant.fate == Fate::hole || mutant.fate == Fate::crashed) {
            if (!options.holes.empty()) write_output(hole_path(options.holes, name, mutant), write(mutated));
            std::cerr << "HOLE: " << json_line(name, mutant) << std::endl;
          }
        });
    tally.add(name, mutants);
    std::cerr << name << ": so far " << tally.summary() << std::endl;
    if (!options.markdown.empty()) {
      write_output(options.markdown, tally.markdown(choice.operators, words_of(options),
                                                    *built_from ? built_from : "an unknown commit"));
    }
  }
  std::cout << tally.summary() << '\n';
  return tally.count(Fate::hole) + tally.count(Fate::crashed) ? Exit::plan_wrong : Exit::well;
}

void declare(CLI::App& app, MutateArguments& options) {
  app.add_option("plan", options.paths, "Plan files")->required();
  app.add_option("--operators", options.operators, "Only these mistakes, by name; default: all")
      ->delimiter(',')
      ->type_name("NAMES");
  app.add_option("--sample", options.sample,
                 "At most so many places of each operator in each plan; default: all")
      ->transform(whole_number(0, UINT32_MAX, "from 0"))
      ->type_name("N");
  app.add_option("--seed", options.seed, "Of the sample; default 1")->type_name("N");
  app.add_option("--schedules", options.schedules,
                 "Adversarial schedules of what no check finds; default 1000, 0: none")
      ->transform(whole_number(0, UINT32_MAX, "from 0"))
      ->type_name("N");
  app.add_option("--threads", options.threads, "Default, and with 0: one for each core")
      ->transform(whole_number(0, 4096))
      ->type_name("N");
  app.add_option("--json", options.json, "Write a line for each mutant as it is judged")->type_name("FILE");
  app.add_flag(
      "--resume", options.resume,
      "Go on where the same command was stopped: what has a line in the file of --json is not judged again");
  app.add_option("--holes", options.holes,
                 "Write the plans of holes into this folder, for chorale run --adversarial --seed")
      ->type_name("FOLDER");
  app.add_option("--markdown", options.markdown, "Write a page with the tables; whole after every plan")
      ->type_name("FILE");
  app.footer(list_operators() +
             "A mutant that no check finds but that fails in a schedule is a hole in the checks: it is said "
             "with its "
             "seed, and\nthe exit status is 1.");
}

int fail(const std::string& what, const std::string& help = "") {
  std::cerr << "error: " << what << '\n';
  if (!help.empty()) std::cerr << "help: " << help << '\n';
  return int(Exit::command_wrong);
}

}  // namespace
}  // namespace chorale::mutation

int main(int count, char** words) {
  using namespace chorale::mutation;
  MutateArguments options;
  CLI::App app("Makes mistakes in right plans and looks whether the checks find them.", "mutate");
  declare(app, options);
  try {
    app.parse(count, words);
    return int(mutate_all(options));
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const chorale::tools::Failure& failure) {
    return fail(failure.what(), failure.help);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
