/// \file
/// Makes plans from the command line's names for them: files, C++ sources, plugins, shipped algorithms.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "chorale/dsl/registry.hpp"
#include "chorale/plan.hpp"
#include "chorale/target.hpp"
#include "tools/command.hpp"

namespace chorale {
struct ProofFacts;
}

namespace chorale::tools {

/// The words of a command line that name a plan.
struct Wanted {
  std::string what;              ///< plan file or "-", *.cpp, *.so, or a shipped name
  std::string name;              ///< --name: the program of a source or plugin
  std::vector<std::string> set;  ///< --set: "key=value"
};

/// Adds <what>, --set and --name to a command.
void declare_wanted(CLI::App&, Wanted&, const std::string& what_it_is);

/// Returns true if `what` names a program (source, plugin or shipped) and not a plan file.
bool names_program(const std::string& what);

/// Loads the source or plugin, if there is one, and returns the name of the one program that is meant.
/// \param besides  other words that the command takes in the place of a name
/// \throws Failure: "did you mean", or the list if there are several
std::string load_program(const Wanted&, std::span<const std::string> besides = {});

/// Reads the "key=value" words of an option as settings.
dsl::Parameters::Settings parse_settings(const std::vector<std::string>& words,
                                         const std::string& option = "--set");

/// The executor for which a plan is compiled, and the checks to leave out: --target and --allow.
struct Aim {
  std::string target;  ///< empty: as the program says
  std::vector<std::string> allow;
  bool minimize_syncs = false;
  bool certify = false;  ///< for build_program(): see CompileOptions
};

/// Adds both options to a command.
void declare_aim(CLI::App&, Aim&, const std::string& target_by_default);
/// Adds --allow alone.
void declare_allow(CLI::App&, std::vector<std::string>& allow, const std::string& description);

/// Returns the target of a word that declare_aim() accepted.
Target target_of(const std::string& word);

/// A program's plan, or its findings.
struct Built {
  Plan plan;
  Diagnostics diagnostics;
  Target target = Target::chorale;  ///< the executor for which it was compiled
};
/// Builds and compiles a program.
/// \throws Failure command_wrong if the program refuses its parameters, plan_wrong for all else that it
/// throws
Built build_program(const std::string& name, const dsl::Parameters::Settings&, const Aim& = {});

/// Calls dsl::describe().
/// \throws Failure as build_program()
dsl::Description describe_program(const std::string& name);

/// Claims standard input, which has only one plan. Call it before reading.
/// \throws Failure command_wrong the second time
void take_standard_input();

/// Reads a plan file, "-" being standard input.
/// \throws Failure plan_wrong if the text is no plan, command_wrong if it cannot be read or is a program
Plan load_plan(const std::string& path);

/// Returns what the checks find. If they find nothing, returns what the proofs and the checks of the target
/// (ours if `aim` names none) find.
/// \param facts  if not null, receives the facts of a plan in which nothing is found
Diagnostics check_plan(const Plan&, const Aim&, ProofFacts* facts = nullptr);

/// Declares -o, the file that write_plan() writes.
void declare_plan_output(CLI::App&, std::string& output);
/// Writes a plan as JSON, or as CBOR if the name ends in .cbor.
void write_plan(const std::string& output, const Plan&);

/// Returns the parameters of a program as help: name, default, bounds, description.
std::string parameters_help(const dsl::Description&);

}  // namespace chorale::tools
