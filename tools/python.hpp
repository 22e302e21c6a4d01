/// \file
/// Programs may be Python sources. They run in Python, with the package chorale, which hands the plan over.
#pragma once

#include <string>

#include "tools/programs.hpp"

namespace chorale::tools {

/// Describes a Python.
struct PythonFound {
  std::string words;  ///< "/usr/bin/python3, Python 3.12.3, NumPy 1.26.4, package chorale"
  bool well = false;  ///< it can run sources, which need the package and no NumPy
};
/// Looks at the Python that $PYTHON names, else at the one beside the command, as in a virtual environment,
/// else at that of the PATH.
PythonFound find_python();

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
