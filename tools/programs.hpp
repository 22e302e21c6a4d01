/// \file
/// Plans from whatever names them on the command line: files, C++ sources, plugins, shipped algorithms.
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

/// What names a plan.
struct Wanted {
  std::string what;              ///< plan file or "-", *.cpp, *.so, or a shipped name
  std::string name;              ///< --name: which program of a source or plugin
  std::vector<std::string> set;  ///< --set: "key=value"
};

/// Adds <what>, --set and --name to a command.
void declare_wanted(CLI::App&, Wanted&, const std::string& what_it_is);

/// True if `what` names a program (source, plugin or shipped) and not a plan file.
bool names_program(const std::string& what);

/// Loads what has to be loaded and returns the name of the one program that is meant.
/// \param besides  what else the command takes in the place of a name
/// \throws Failure: "did you mean", or the list if there are several
std::string load_program(const Wanted&, std::span<const std::string> besides = {});

/// "key=value" words of an option as settings.
dsl::Parameters::Settings parse_settings(const std::vector<std::string>& words,
                                         const std::string& option = "--set");

/// --target and --allow: for whose executor, and which of its checks to leave out.
struct Aim {
  std::string target;  ///< empty: as the program says
  std::vector<std::string> allow;
  bool minimize_syncs = false;
  bool certify = false;  ///< of build_program(): see CompileOptions
};

/// Adds both options to a command.
void declare_aim(CLI::App&, Aim&, const std::string& target_by_default);
/// --allow alone.
void declare_allow(CLI::App&, std::vector<std::string>& allow, const std::string& description);

/// The target of a word that declare_aim() accepted.
Target target_of(const std::string& word);

/// A program's plan, or its findings.
struct Built {
  Plan plan;
  Diagnostics diagnostics;
  Target target = Target::chorale;  ///< for whose executor it was compiled
};
/// \throws Failure command_wrong if the program refuses its parameters, plan_wrong for all else that it
/// throws
Built build_program(const std::string& name, const dsl::Parameters::Settings&, const Aim& = {});

/// dsl::describe(). \throws Failure as build_program()
dsl::Description describe_program(const std::string& name);

/// Before standard input is read: there is only one plan in it.
/// \throws Failure command_wrong the second time
void take_standard_input();

/// Reads a plan file, "-" being standard input.
/// \throws Failure plan_wrong if the text is no plan, command_wrong if it cannot be read or is a program
Plan load_plan(const std::string& path);

/// What the checks find, and if they find nothing the proofs and the checks of the target (ours if `aim`
/// names none).
/// \param facts  if not null, gets what is true of a plan in which nothing is found
Diagnostics check_plan(const Plan&, const Aim&, ProofFacts* facts = nullptr);

/// Declares -o: where write_plan() writes.
void declare_plan_output(CLI::App&, std::string& output);
/// Writes a plan as JSON, or as CBOR if the name ends in .cbor.
void write_plan(const std::string& output, const Plan&);

/// The parameters of a program as help: name, default, bounds, description.
std::string parameters_help(const dsl::Description&);

}  // namespace chorale::tools
