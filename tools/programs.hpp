/// \file
/// Makes plans from the names that a command line has for them: files, C++ sources, plugins, shipped
/// algorithms.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/compile_options.hpp"
#include "chorale/diagnostic.hpp"
#include "chorale/dsl/registry.hpp"
#include "chorale/plan.hpp"
#include "chorale/target.hpp"
#include "tools/command.hpp"

namespace chorale {
struct ProofFacts;
}

namespace chorale::tools {

/// Holds the words of a command line that name a plan.
struct Wanted {
  std::string what;              ///< plan file or "-", *.cpp, *.py, *.so, or a shipped name
  std::string name;              ///< --name: the program of a source or plugin
  std::vector<std::string> set;  ///< --set: "key=value"
};

/// Adds <what>, --set and --name to a command.
void declare_wanted(CLI::App&, Wanted&, const std::string& what_it_is);
/// Adds --set and --name alone.
void declare_set_and_name(CLI::App&, Wanted&);

/// Returns the names of the shipped algorithms, sorted.
std::vector<std::string> algorithm_names();

/// Returns true if it is one of algorithm_names(), or a program of a source or plugin that was loaded.
bool is_registered(const std::string& name);

/// Returns true if `what` names a program (source, Python, plugin or shipped) and not a plan file.
bool names_program(const std::string& what);

/// Returns true if `what` names a source of a program.
bool names_source(const std::string& what);

/// Loads the source or plugin, if there is one, and returns the name of the program that the command line
/// means.
/// \param besides  other words that the command accepts in place of a name
/// \throws Failure with "did you mean", or with the list if there are several programs
std::string load_program(const Wanted&, std::span<const std::string> besides = {});

/// Reads the "key=value" words of an option as settings.
dsl::Parameters::Settings parse_settings(const std::vector<std::string>& words,
                                         const std::string& option = "--set");

/// Says for which executor a plan is compiled, and which checks to leave out: --target and --allow.
struct Aim {
  std::string target;  ///< empty: as the program says
  std::vector<std::string> allow;
  bool minimize_syncs = false;
  bool certify = false;  ///< for build_program(): see CompileOptions
};

/// Returns the options of a compilation, with those of the aim.
CompileOptions with_aim(CompileOptions, const Aim&);

/// Declares both options.
void declare_aim(CLI::App&, Aim&, const std::string& target_by_default);
/// Declares --allow alone.
/// \param of_target  whether it also names checks of the target
void declare_allow(CLI::App&, std::vector<std::string>& allow, bool of_target = false);

/// Returns the target of a word that declare_aim() accepted.
Target target_of(const std::string& word);

/// Holds a program's plan, or its findings.
struct Built {
  Plan plan;
  Diagnostics diagnostics;
  Target target = Target::chorale;  ///< the executor for which it was compiled
};
/// Builds and compiles a program.
/// \throws Failure command_wrong if the program refuses its parameters, plan_wrong for everything else that
/// it throws
Built build_program(const std::string& name, const dsl::Parameters::Settings&, const Aim& = {});

/// Calls dsl::describe().
/// \throws Failure as build_program()
dsl::Description describe_program(const std::string& name);

/// Returns true if the program has a parameter of that name.
/// \throws Failure as describe_program()
bool takes_parameter(const std::string& program, std::string_view parameter);

/// Claims standard input, because only one plan can be read from it. Call it before reading.
/// \throws Failure command_wrong the second time
void take_standard_input();

/// Reads a plan file; "-" is standard input.
/// \throws Failure plan_wrong if the text is not a plan, command_wrong if it cannot be read or is a program
Plan load_plan(const std::string& path);

/// Reads a plan file, or builds a source with settings and without proofs. Findings of the source are
/// reported.
/// \throws Failure as load_plan() and build_program(), plan_wrong for a source with findings
Plan load_plan_or_source(const std::string& path, const dsl::Parameters::Settings&);

/// Declares --set for plans that load_plan_or_source() loads.
void declare_sources_set(CLI::App&, std::vector<std::string>& set);
/// \throws Failure command_wrong if there are settings, but no path names a source
void need_source(const std::vector<std::string>& set, const std::vector<std::string>& paths);

/// Returns the findings of the checks. If there are none, returns the findings of the proofs and of the
/// checks of the target (ours if `aim` names none).
/// \param facts  if not null, receives the facts of a plan without findings
Diagnostics check_plan(const Plan&, const Aim&, ProofFacts* facts = nullptr);

/// Declares -o, the file that write_plan() writes.
void declare_plan_output(CLI::App&, std::string& output);
/// Writes a plan as JSON, or as CBOR if the name ends in .cbor.
void write_plan(const std::string& output, const Plan&);

/// Returns the parameters of a program as help: name, default, bounds, description.
std::string parameters_help(const dsl::Description&);

}  // namespace chorale::tools
