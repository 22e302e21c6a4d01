/// \file
/// Plans from whatever names them on the command line: files, C++ sources, plugins, shipped algorithms.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "chorale/dsl/registry.hpp"
#include "chorale/plan.hpp"
#include "tools/command.hpp"

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
/// \throws Failure: "did you mean", or the list if there are several
std::string load_program(const Wanted&);

/// "key=value" words as settings.
dsl::Parameters::Settings parse_settings(const std::vector<std::string>& words);

/// A program's plan, or its findings.
struct Built {
  Plan plan;
  Diagnostics diagnostics;
};
Built build_program(const std::string& name, const dsl::Parameters::Settings&);

/// Reads a plan file, "-" being standard input.
/// \throws Failure plan_wrong if the text is no plan, command_wrong if it cannot be read
Plan load_plan(const std::string& path);

/// Prints the findings to stderr. True if there were any.
bool report(const Plan&, const Diagnostics&);

/// The parameters of a program as help: name, default, bounds, description.
std::string parameters_help(const dsl::Description&);

}  // namespace chorale::tools
