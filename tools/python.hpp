/// \file
/// Programs may be Python sources. They run in Python, with the package chorale, which hands the plan over.
#pragma once

#include <string>

#include "tools/programs.hpp"

namespace chorale::tools {

/// Returns the Python that $PYTHON names, else the one beside the command, as in a virtual environment, else
/// that of the PATH: its whole path if it is found, else its name.
std::string find_python();

/// Says what the Python of find_python() has: "Python 3.12, NumPy 1.26, package chorale".
/// \param well  set to whether it can run sources
std::string python_words(bool& well);

/// Returns whether `what` names a Python source.
bool is_python(const std::string& what);

/// Names the program of the source that build_python() takes. If it is empty, the source has one program.
void choose_python(const std::string& source, const std::string& program);

/// Runs a source and returns the plan and the findings of its program. Settings become arguments of the
/// source: ranks=4 is --ranks=4.
/// \throws Failure plan_wrong if the source fails, command_wrong if it refuses its arguments, if it cannot be
/// read, or if Python or the package is missing
Built build_python(const std::string& source, const dsl::Parameters::Settings&, const Aim&);

}  // namespace chorale::tools
