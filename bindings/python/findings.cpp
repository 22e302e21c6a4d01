#include "findings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <utility>

#include "chorale/json.hpp"
#include "chorale/renderer.hpp"
#include "chorale/target.hpp"
#include "chorale/witness.hpp"

namespace py = pybind11;

namespace chorale::python {
namespace {

std::optional<std::string> operation_at(const Plan& plan, const std::optional<OpPlace>& at) {
  if (!at || at->rank >= plan.ranks()) return std::nullopt;
  const Gpu& gpu = plan.gpus[at->rank];
  for (const ThreadBlock& block : gpu.threadblocks) {
    if (block.id == at->threadblock && at->op < block.ops.size())
      return op_words(gpu, block, block.ops[at->op]);
  }
  return std::nullopt;
}

py::dict note_of(const Plan& plan, const Note& note) {
  const SourceLine line = author_line(plan, note.line, note.at);
  py::dict all;
  all["message"] = note.text;
  all["file"] = line.line ? py::cast(line.file) : py::none();
  all["line"] = line.line ? py::cast(line.line) : py::none();
  all["rank"] = note.at ? py::cast(note.at->rank) : py::none();
  all["block"] = note.at ? py::cast(note.at->threadblock) : py::none();
  all["op"] = note.at ? py::cast(note.at->op) : py::none();
  all["operation"] = operation_at(plan, note.at);
  return all;
}

/// Makes a property that is None if the finding does not name it.
template <class Value>
auto of_place(Value OpPlace::*member) {
  return [member](const PlanFinding& self) {
    return self.diagnostic.at ? std::optional<Value>((*self.diagnostic.at).*member) : std::nullopt;
  };
}

SourceLine line_of(const PlanFinding& self) {
  return author_line(*self.plan, self.diagnostic.line, self.diagnostic.at);
}

/// Limits the text of a finding in its repr(), in bytes. Lists of findings print these.
constexpr size_t most_of_text = 60;

std::string shortened(const std::string& text) {
  if (text.size() <= most_of_text) return text;
  const size_t end = text.rfind(' ', most_of_text);
  return text.substr(0, end == text.npos ? most_of_text : end) + " ...";
}

std::string text_of(const PlanFinding& self) {
  return render(*self.plan, self.diagnostic) + self.counter_example;
}

}  // namespace

PlanFindings explained(const SharedPlan& plan, const Diagnostics& diagnostics) {
  PlanFindings all;
  for (const Diagnostic& diagnostic : diagnostics) all.push_back({plan, diagnostic, ""});
  auto at = std::find_if(all.begin(), all.end(),
                         [](const PlanFinding& of) { return is_proof(of.diagnostic.check); });
  if (at == all.end()) return all;
  for (const Finding& finding : prove_again(*plan, diagnostics)) {
    if (at == all.end() || at->diagnostic.check != finding.proof) break;
    at++->counter_example = render(explain(*plan, finding));
  }
  return all;
}

PlanFindings findings_of(const SharedPlan& plan, Target target, const std::vector<std::string>& allow) {
  Diagnostics findings = check(*plan);
  if (!findings.empty()) return explained(plan, findings);
  Diagnostics of_target = check(*plan, target, allow);
  findings = prove_plan(*plan, allow).diagnostics();
  std::move(of_target.begin(), of_target.end(), std::back_inserter(findings));
  return explained(plan, findings);
}

py::object listed(const PlanFindings& findings) {
  return py::module_::import("chorale._errors").attr("Findings")(py::cast(findings));
}

void raise(const PlanFindings& findings) {
  const py::object type = py::module_::import("chorale._errors").attr("FindingsError");
  PyErr_SetObject(type.ptr(), type(py::cast(findings)).ptr());
  throw py::error_already_set();
}

Target target_of(const std::string& word) {
  const auto found = std::find(std::begin(target_names), std::end(target_names), word);
  if (found == std::end(target_names))
    throw std::invalid_argument(
        fmt::format("there is no target '{}'; targets are {}", word, fmt::join(target_names, ", ")));
  return Target(found - std::begin(target_names));
}

void declare_findings(py::module_& module) {
  py::class_<PlanFinding>(module, "Finding",
                          "Tells what is wrong with a plan or a program, and where. str() of it is what the "
                          "command prints, with the counter-example.")
      .def_property_readonly(
          "kind", [](const PlanFinding& self) { return self.diagnostic.check; },
          "Name of the check, proof or rewrite that found it, such as 'races'. Calls of the language that "
          "are wrong have 'dsl'.")
      .def_property_readonly(
          "message", [](const PlanFinding& self) { return self.diagnostic.text; },
          "What is wrong, with the values.")
      .def_property_readonly(
          "help", [](const PlanFinding& self) { return self.diagnostic.help; },
          "What to change; empty if that is not known.")
      .def_property_readonly("rank", of_place(&OpPlace::rank), "Rank of the operation, or None.")
      .def_property_readonly("block", of_place(&OpPlace::threadblock),
                             "Thread block of the operation, or None.")
      .def_property_readonly("op", of_place(&OpPlace::op),
                             "Position of the operation in its thread block, or None.")
      .def_property_readonly(
          "operation", [](const PlanFinding& self) { return operation_at(*self.plan, self.diagnostic.at); },
          "The operation in words, or None.")
      .def_property_readonly(
          "file",
          [](const PlanFinding& self) {
            const SourceLine line = line_of(self);
            return line.line ? std::optional(line.file) : std::nullopt;
          },
          "Name of the author's file, without folders, or None.")
      .def_property_readonly(
          "line",
          [](const PlanFinding& self) {
            const SourceLine line = line_of(self);
            return line.line ? std::optional(line.line) : std::nullopt;
          },
          "Number of the author's line, or None.")
      .def_property_readonly(
          "path", [](const PlanFinding& self) { return self.diagnostic.path; },
          "JSON path of the wrong part of the plan; empty if the whole operation is wrong.")
      .def_property_readonly(
          "notes",
          [](const PlanFinding& self) {
            py::list all;
            for (const Note& note : self.diagnostic.notes) all.append(note_of(*self.plan, note));
            return all;
          },
          "What else matters: a list of dictionaries with message, file, line, rank, block, op, operation.")
      .def_readonly("counter_example", &PlanFinding::counter_example,
                    "The events that show it, as lines of text; empty if no proof found it.")
      .def("__str__", &text_of)
      .def("__repr__", [](const PlanFinding& self) {
        const SourceLine line = line_of(self);
        const std::string where = line.line ? fmt::format(" at {}:{}", line.file, line.line) : "";
        return fmt::format("<chorale.Finding {}{}: {}>", self.diagnostic.check, where,
                           shortened(self.diagnostic.text));
      });
}

}  // namespace chorale::python
