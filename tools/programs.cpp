#include "tools/programs.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "chorale/json.hpp"
#include "chorale/progress.hpp"
#include "chorale/proof.hpp"
#include "chorale/shipped_name.hpp"
#include "tools/algorithms.hpp"
#include "tools/authored.hpp"
#include "tools/completion.hpp"
#include "tools/findings.hpp"
#include "tools/plans.hpp"
#include "tools/python.hpp"
#include "tools/source.hpp"

namespace chorale::tools {
namespace {

bool is_source(const std::string& what) {
  return what.ends_with(".cpp") || what.ends_with(".cc") || what.ends_with(".cxx");
}

bool is_plugin(const std::string& what) { return what.ends_with(".so"); }

/// Loads a source or plugin, and returns the names of the programs that it has added.
std::vector<std::string> load(const std::string& what) {
  const std::vector<std::string> before = algorithm_names();
  {
    const CrashNote note(what);  // a plugin may run any code while it is loaded
    const PrintsAside aside;
    is_source(what) ? load_source(what) : load_plugin(what);
  }
  const std::vector<std::string> after = algorithm_names();
  std::vector<std::string> added;
  std::set_difference(after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(added));
  if (added.empty()) {
    throw Failure(Exit::plan_wrong, what + " registers no program",
                  "write CHORALE_PROGRAM(name, Parameters& with) { ...; return program; }");
  }
  return added;
}

/// Names the source in findings and notes that have no line.
void name_source(Built& built, const std::string& file) {
  const auto name = [&](SourceLine& line, const std::optional<OpPlace>& at) {
    if (!author_line(built.plan, line, at).line) line.file = file;
  };
  for (Diagnostic& finding : built.diagnostics) {
    name(finding.line, finding.at);
    for (Note& note : finding.notes) name(note.line, note.at);
  }
}

/// Returns the name of the file that has a program in C++.
std::string file_of(const std::string& program) {
  for (const dsl::RegisteredProgram& one : dsl::programs()) {
    if (one.name == program) return one.file;
  }
  return program;
}

/// Refuses a program that is named instead of a plan, and says how to make its plan.
[[noreturn]] void refuse_program(const std::string& program) {
  throw Failure(Exit::command_wrong, program + " is a program, not a plan",
                "chorale compile " + program + " -o plan.json makes its plan");
}

/// Refuses the name that bench and tune use for a plan: the algorithm and its parameters. The name of a
/// plan's file also has the number of ranks.
void refuse_form(const std::string& what) {
  std::string name = what;
  int ranks = 8;  // the default of shipped programs
  const size_t ending = what.find_last_not_of("0123456789");
  const bool numbered =
      ending != what.npos && what.size() - ending - 1 < 5 && ending + 1 < what.size() && what[ending] == '_';
  if (numbered) {
    name = what.substr(0, ending);
    ranks = std::max(1, std::stoi(what.substr(ending + 1)));
  }
  const ShippedName made = shipped_name(name, ranks);
  if (!is_registered(made.program)) return;
  std::string words = made.program;
  for (const auto& [key, value] : made.settings) words += " --set " + key + "=" + value;
  throw Failure(Exit::command_wrong, "'" + what + "' is a plan of the algorithm '" + made.program + "'",
                "for " + count(uint64_t(ranks), "rank") + " that is " + words);
}

/// Refuses the name of a host schedule, because host schedules are shipped only as files.
void refuse_schedule(const std::string& what) {
  const std::string file = shipped_schedule(what);
  if (file.empty()) return;
  throw Failure(Exit::command_wrong, "'" + what + "' is a host schedule, not an algorithm",
                "name its file: " + file);
}

/// \param whose  the words before "number of ranks" in the description
void declare_set(CLI::App& app, std::vector<std::string>& set, const std::string& whose) {
  app.add_option("--set", set, "A parameter of " + whose + " number of ranks; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

}  // namespace

std::vector<std::string> algorithm_names() {
  std::vector<std::string> all;
  for (const dsl::RegisteredProgram& program : dsl::programs()) all.push_back(program.name);
  std::sort(all.begin(), all.end());
  return all;
}

bool is_registered(const std::string& name) {
  const std::vector<dsl::RegisteredProgram> all = dsl::programs();
  return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
}

void declare_wanted(CLI::App& app, Wanted& wanted, const std::string& what_it_is) {
  suggest(app.add_option("what", wanted.what, what_it_is)->required(), algorithm_names);
  declare_set_and_name(app, wanted);
}

void declare_set_and_name(CLI::App& app, Wanted& wanted) {
  declare_set(app, wanted.set, "the program, such as ranks=8 for its");
  app.add_option("--name", wanted.name, "The program to use, if a source has several")->type_name("NAME");
}

void declare_sources_set(CLI::App& app, std::vector<std::string>& set) {
  declare_set(app, set, "the sources, such as ranks=8 for their");
}

void declare_aim(CLI::App& app, Aim& aim, const std::string& target_by_default) {
  const std::vector<std::string> words(std::begin(target_names), std::end(target_names));
  app.add_option("--target", aim.target,
                 "The executor that runs the plan: " + join(words) + "; " + target_by_default)
      ->type_name("TARGET")
      ->check(one_of("target", words));
  declare_allow(app, aim.allow, true);
}

void declare_allow(CLI::App& app, std::vector<std::string>& allow, bool of_target) {
  const std::vector<std::string> names(std::begin(proof_names), std::end(proof_names));
  app.add_option("--allow", allow,
                 "A proof (" + join(names) + ")" + (of_target ? " or a check of the target" : "") +
                     " to leave out, as the brackets after a finding say, or " + std::string(all_proofs) +
                     " for all proofs; may be repeated. Nothing then ensures that the plan is right")
      ->type_name("CHECK")
      ->allow_extra_args(false);
}

Target target_of(const std::string& word) {
  return Target(std::find(std::begin(target_names), std::end(target_names), word) - std::begin(target_names));
}

CompileOptions with_aim(CompileOptions options, const Aim& aim) {
  if (!aim.target.empty()) options.target = target_of(aim.target);
  options.allow = aim.allow;
  options.minimize_syncs = aim.minimize_syncs;
  options.certify = aim.certify;
  return options;
}

bool names_program(const std::string& what) {
  if (is_source(what) || is_plugin(what) || is_python(what)) return true;
  if (what == "-" || what.ends_with(".json")) return false;
  std::error_code error;
  return !std::filesystem::exists(what, error);
}

bool names_source(const std::string& what) { return is_source(what) || is_python(what); }

std::string load_program(const Wanted& wanted, std::span<const std::string> besides) {
  if (is_python(wanted.what)) {
    choose_python(wanted.what, wanted.name);
    return wanted.what;
  }
  if (is_source(wanted.what) || is_plugin(wanted.what)) {
    const std::vector<std::string> added = load(wanted.what);
    if (!wanted.name.empty()) {
      if (std::find(added.begin(), added.end(), wanted.name) == added.end()) {
        throw Failure(Exit::command_wrong, unknown("program", wanted.name, added),
                      wanted.what + " has " + join(added));
      }
      return wanted.name;
    }
    if (added.size() > 1) {
      throw Failure(Exit::command_wrong, wanted.what + " has several programs: " + join(added),
                    "choose one with --name");
    }
    return added.front();
  }
  const bool known_name = is_registered(wanted.what);
  if (known_name && !wanted.name.empty() && wanted.name != wanted.what) {
    throw Failure(Exit::command_wrong,
                  "--name chooses a program of a source or plugin, and '" + wanted.what + "' is a program",
                  "leave --name out");
  }
  if (!known_name) {
    const bool path =
        wanted.what.find('/') != std::string::npos || wanted.what.find('.') != std::string::npos;
    if (path) throw Failure(Exit::command_wrong, "there is no file " + wanted.what);
    refuse_form(wanted.what);
    refuse_schedule(wanted.what);
    refuse_collective(wanted.what);
    std::vector<std::string> known(besides.begin(), besides.end());
    for (const std::vector<std::string>& more : {algorithm_names(), shipped_schedules()})
      known.insert(known.end(), more.begin(), more.end());
    throw Failure(Exit::command_wrong, unknown("algorithm", wanted.what, known),
                  "chorale list names those that are shipped");
  }
  return wanted.what;
}

dsl::Parameters::Settings parse_settings(const std::vector<std::string>& words, const std::string& option) {
  dsl::Parameters::Settings settings;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == 0 || equals == word.npos) {
      throw Failure(Exit::command_wrong, option + " takes key=value, not '" + word + "'");
    }
    if (!settings.emplace(word.substr(0, equals), word.substr(equals + 1)).second) {
      throw Failure(Exit::command_wrong, option + " gives '" + word.substr(0, equals) + "' twice");
    }
  }
  return settings;
}

Built build_program(const std::string& name, const dsl::Parameters::Settings& settings, const Aim& aim) {
  if (is_python(name)) {
    Built built = build_python(name, settings, aim);
    name_source(built, std::filesystem::path(name).filename().string());
    return built;
  }
  Progress progress;
  // The program itself tells nothing, and its checks and proofs tell the share that is done.
  std::optional<ProgressTicker> ticker("compiling " + name);
  const ProgressWatch watch([&](double share) {
    ticker.reset();
    progress("compiling " + name, share);
  });
  return authored(name, [&]() -> Built {
    dsl::Program program = dsl::build(name, settings);
    const CompileOptions options = with_aim(program.compile_options(), aim);
    dsl::Compiled compiled = std::move(program).compile(options);
    Built built{std::move(compiled.plan), std::move(compiled.diagnostics), options.target};
    name_source(built, file_of(name));
    return built;
  });
}

dsl::Description describe_program(const std::string& name) {
  if (is_python(name)) {
    throw Failure(Exit::command_wrong, "only " + name + " itself knows its parameters",
                  "python3 " + name + " --help lists them, if it uses argparse");
  }
  return authored(name, [&] { return dsl::describe(name); });
}

bool takes_parameter(const std::string& program, std::string_view parameter) {
  const std::vector<dsl::Parameter> all = describe_program(program).parameters;
  return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.name == parameter; });
}

void take_standard_input() {
  static bool taken = false;
  if (std::exchange(taken, true))
    throw Failure(Exit::command_wrong, "only one of the plans can be standard input");
}

Plan load_plan(const std::string& path) {
  if (path == "-") take_standard_input();
  try {
    return chorale::load(path);
  } catch (const PlanError& error) {
    if (is_source(path) || is_plugin(path) || is_python(path)) refuse_program(path);
    if (names_algorithm(path))
      throw Failure(Exit::command_wrong, path + " is an algorithm of MSCCL, not a plan",
                    "chorale import " + path + " -o plan.json makes its plan");
    throw Failure(Exit::plan_wrong, error.what());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::runtime_error& error) {
    if (is_registered(path)) refuse_program(path);
    throw Failure(Exit::command_wrong, error.what());
  }
}

Plan load_plan_or_source(const std::string& path, const dsl::Parameters::Settings& settings) {
  if (!names_source(path)) return load_plan(path);
  Built built = build_program(load_program({path, "", {}}), settings,
                              {.target = {}, .allow = {std::string(all_proofs)}});
  if (report(built.plan, built.diagnostics))
    throw Failure(Exit::plan_wrong, "a program with findings has no plan yet");
  return std::move(built.plan);
}

void need_source(const std::vector<std::string>& set, const std::vector<std::string>& paths) {
  if (set.empty() || std::any_of(paths.begin(), paths.end(), names_source)) return;
  throw Failure(Exit::command_wrong, "--set is for sources, and there is none",
                "a plan file has its parameters already");
}

Diagnostics check_plan(const Plan& plan, const Aim& aim, ProofFacts* facts) {
  Diagnostics findings = chorale::check(plan);
  if (!findings.empty()) return findings;
  try {
    Diagnostics of_target =
        chorale::check(plan, aim.target.empty() ? Target::chorale : target_of(aim.target), aim.allow);
    if (aim.certify) require_all_proofs(aim.allow);
    Proof proof = prove_plan(plan, aim.allow, aim.certify);
    findings = proof.diagnostics();
    if (facts) *facts = std::move(proof.facts);
    std::move(of_target.begin(), of_target.end(), std::back_inserter(findings));
    return findings;
  } catch (const std::invalid_argument& error) {
    throw Failure(Exit::command_wrong, error.what());
  }
}

void declare_plan_output(CLI::App& app, std::string& output) {
  app.add_option("-o,--output", output,
                 "Write the plan to FILE; default -, standard output; as CBOR if the name ends in .cbor")
      ->type_name("FILE");
}

void write_plan(const std::string& output, const Plan& plan) {
  std::optional<ProgressTicker> writing;
  if (output != "-") writing.emplace("writing " + output);
  if (!output.ends_with(".cbor")) return write_output(output, write(plan));
  std::ostringstream bytes;
  write_cbor(plan, bytes);
  write_output(output, bytes.view());
}

std::string parameters_help(const dsl::Description& program) {
  std::string text;
  for (const dsl::Parameter& parameter : program.parameters) {
    std::string head = "  " + parameter.name + "=" + parameter.default_value;
    head.resize(std::max<size_t>(head.size() + 2, 24), ' ');
    text += head + parameter.description;
    const int64_t least = parameter.bounds.min, most = parameter.bounds.max;
    const bool has_least = least != std::numeric_limits<int64_t>::min();
    const bool has_most = most != std::numeric_limits<int64_t>::max();
    if (has_least && has_most) text += " (" + std::to_string(least) + " to " + std::to_string(most) + ")";
    if (has_least && !has_most) text += " (" + std::to_string(least) + " or more)";
    if (!has_least && has_most) text += " (" + std::to_string(most) + " or less)";
    text += '\n';
  }
  return text;
}

}  // namespace chorale::tools
