/// \file
/// Findings as Python sees them.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "chorale/compile.hpp"
#include "chorale/plan.hpp"

namespace chorale::python {

/// Holds a plan that does not change any more. Python's objects share it.
using SharedPlan = std::shared_ptr<const Plan>;

/// Holds a finding of a plan, or of the calls of a program.
struct PlanFinding {
  SharedPlan plan;
  Diagnostic diagnostic;
  std::string counter_example;  ///< lines of text; empty if no proof found it
};
using PlanFindings = std::vector<PlanFinding>;

/// Returns the findings with their counter-examples.
PlanFindings explained(const SharedPlan& plan, const Diagnostics& diagnostics);

/// Returns what `chorale check` finds: the checks, then the proofs and the checks of the target.
/// \throws std::invalid_argument if `allow` has an unknown name
PlanFindings findings_of(const SharedPlan& plan, Target target, const std::vector<std::string>& allow);

/// Returns chorale.Findings, a list that prints as the command prints it. Needs the GIL.
pybind11::object listed(const PlanFindings& findings);

/// Raises chorale.FindingsError. Needs the GIL.
[[noreturn]] void raise(const PlanFindings& findings);

/// Returns the target of a word.
/// \throws std::invalid_argument with the words that exist
Target target_of(const std::string& word);

void declare_findings(pybind11::module_&);

}  // namespace chorale::python
