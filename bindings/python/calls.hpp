/// \file
/// Calls with wrong arguments get one sentence instead of pybind11's list of all overloads.
#pragma once

#include <pybind11/pybind11.h>

namespace chorale::python {

/// Makes the functions of a module, and those of its classes, say which argument of a call is missing or
/// wrong. The exception is a TypeError as before. Call it after everything is declared.
void explain_calls(const pybind11::module_& module);

}  // namespace chorale::python
