// This file gives Python the programs of chorale.language: CollectiveProgram, and how it is compiled.

#include <fmt/format.h>
#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "chorale/dsl.hpp"
#include "chorale/json.hpp"
#include "findings.hpp"
#include "frames.hpp"
#include "language.hpp"
#include "objects.hpp"

namespace py = pybind11;

namespace chorale::python {
namespace {

/// Lists the programs whose `with` blocks this thread is in.
std::vector<SharedProgram>& entered() {
  static thread_local auto& programs = *new std::vector<SharedProgram>();  // as kept()
  return programs;
}

/// Says for which executor programs are compiled that do not say it, and which checks are left out.
struct Aim {
  std::optional<std::string> target;
  std::vector<std::string> allow;
  bool minimize_syncs = false, certify = false;
};
Aim& default_aim() {
  static Aim aim;
  return aim;
}

struct Built {
  SharedPlan plan;
  Diagnostics diagnostics;
};

Built build(ProgramObject& self, const Aim& aim) {
  py::gil_scoped_release release;
  CompileOptions options = self.program.compile_options();
  if (aim.target) options.target = target_of(*aim.target);
  options.allow = aim.allow;
  options.minimize_syncs = aim.minimize_syncs;
  options.certify = aim.certify;
  dsl::Compiled compiled = self.program.compile(options);
  return {std::make_shared<const Plan>(std::move(compiled.plan)), std::move(compiled.diagnostics)};
}

PlanObject compile(ProgramObject& self, const Aim& aim) {
  Built built = build(self, aim);
  if (!built.diagnostics.empty()) raise(explained(built.plan, built.diagnostics));
  return {built.plan};
}

Aim aim_of(const std::optional<std::string>& target, const std::optional<std::vector<std::string>>& allow,
           std::optional<bool> minimize_syncs, std::optional<bool> certify) {
  Aim aim = default_aim();
  if (target) aim.target = target;
  if (allow) aim.allow = *allow;
  if (minimize_syncs) aim.minimize_syncs = *minimize_syncs;
  if (certify) aim.certify = *certify;
  return aim;
}

/// Lists every program that is made, if _keep_programs() was called.
std::optional<std::vector<SharedProgram>>& kept() {
  // It is never destroyed, because programs may have functions of Python, which ends before this process
  // does.
  static auto& programs = *new std::optional<std::vector<SharedProgram>>();
  return programs;
}

Protocol protocol_of(const std::string& word) {
  if (word == "Simple") return Protocol::Simple;
  if (word == "LL") return Protocol::LL;
  throw std::invalid_argument(
      fmt::format("there is no protocol '{}'; protocols are 'Simple' and 'LL' (packets)", word));
}

SharedProgram make_program(const std::string& name, const dsl::Collective& collective,
                           std::optional<int64_t> num_ranks, int64_t instances, const std::string& protocol,
                           bool instr_fusion, bool auto_sync, ReplicationPolicy replication,
                           bool reuse_resources, int64_t num_threads_per_block,
                           bool use_double_scratch_buffer, int64_t buffer_alignment,
                           uint64_t min_message_size, uint64_t max_message_size, bool bounded_proof,
                           const std::string& target) {
  if (num_ranks && *num_ranks != collective.ranks)
    throw std::invalid_argument(fmt::format(
        "program '{}' is for num_ranks={}, but its collective {} is for {} ranks; write the same number",
        name, *num_ranks, collective.name, collective.ranks));
  const auto program = std::make_shared<ProgramObject>(
      ProgramObject{dsl::Program({.name = name,
                                  .collective = collective,
                                  .protocol = protocol_of(protocol),
                                  .instances = instances,
                                  .fuse = instr_fusion,
                                  .auto_sync = auto_sync,
                                  .replication = replication,
                                  .reuse_resources = reuse_resources,
                                  .threads_per_block = num_threads_per_block,
                                  .use_double_scratch_buffer = use_double_scratch_buffer,
                                  .buffer_alignment = buffer_alignment,
                                  .min_message_size = min_message_size,
                                  .max_message_size = max_message_size,
                                  .bounded_proof = bounded_proof,
                                  .target = target_of(target)},
                                 here()),
                    collective});
  if (kept()) kept()->push_back(program);
  return program;
}

SharedProgram from_spec(const py::object& spec) {
  const auto name = spec.attr("name").is_none() ? std::string() : spec.attr("name").cast<std::string>();
  return make_program(
      name, spec.attr("collective").cast<dsl::Collective>(), spec.attr("world_size").cast<int64_t>(),
      spec.attr("instances").cast<int64_t>(), spec.attr("protocol").cast<std::string>(),
      spec.attr("instr_fusion").cast<bool>(), spec.attr("auto_sync").cast<bool>(),
      spec.attr("replication_policy").cast<ReplicationPolicy>(), spec.attr("reuse_resources").cast<bool>(),
      spec.attr("num_threads_per_block").cast<int64_t>(), spec.attr("use_double_scratch_buffer").cast<bool>(),
      spec.attr("buffer_alignment").cast<int64_t>(), spec.attr("min_message_size").cast<uint64_t>(),
      spec.attr("max_message_size").cast<uint64_t>(), false, "chorale");
}

}  // namespace

const SharedProgram& current(const char* what) {
  if (entered().empty())
    throw std::runtime_error(
        fmt::format("there is no current program for this {0}: make it inside `with "
                    "CollectiveProgram(...):`, or write {0}(program, ...)",
                    what));
  return entered().back();
}

void declare_program(py::module_& module) {
  py::class_<ProgramObject, SharedProgram>(
      module, "CollectiveProgram",
      "Records an algorithm, and compiles it into a plan.\n\n"
      "    with CollectiveProgram('mine', AllReduce(8, 1, True), 8) as program:\n"
      "        ...\n"
      "    plan = program.compile()\n\n"
      "num_ranks is that of the collective if it is left out. instances (1 to 1024) copies of the program "
      "each take a "
      "share of every operand. num_threads_per_block is a multiple of 32, to 1024. buffer_alignment, "
      "min_message_size and "
      "max_message_size are bytes. With bounded_proof, thread blocks may compete for semaphores and "
      "channels, and the "
      "proofs cover only a bounded number of orders. target is the executor: 'chorale' or 'mscclpp'.\n\n"
      "Values out of their bounds are findings.")
      .def(py::init(&make_program), py::arg("name"), py::arg("collective"), py::arg("num_ranks") = py::none(),
           py::arg("instances") = 1, py::arg("protocol") = "Simple", py::arg("instr_fusion") = true,
           py::arg("auto_sync") = true, py::arg("replication_policy") = ReplicationPolicy::interleaved,
           py::arg("reuse_resources") = false, py::arg("num_threads_per_block") = 1024,
           py::arg("use_double_scratch_buffer") = false, py::arg("buffer_alignment") = 16,
           py::arg("min_message_size") = 0, py::arg("max_message_size") = UINT64_MAX,
           py::arg("bounded_proof") = false, py::arg("target") = "chorale")
      .def_static("from_spec", &from_spec, py::arg("spec"), "Makes a program with the values of an AlgoSpec.")
      .def("__enter__",
           [](const SharedProgram& self) {
             entered().push_back(self);
             return self;
           })
      .def("__exit__", [](const SharedProgram&, const py::args&) { entered().pop_back(); })
      .def_property_readonly("name", [](const ProgramObject& self) { return self.program.name(); })
      .def_property_readonly("num_ranks", [](const ProgramObject& self) { return self.program.num_ranks(); })
      .def_property_readonly("collective", [](const ProgramObject& self) { return self.collective; })
      .def_property_readonly(
          "recorded_operations", [](const ProgramObject& self) { return self.program.recorded_ops(); },
          "Number of operations recorded so far. Those of a loop count once.")
      .def(
          "compile",
          [](ProgramObject& self, const std::optional<std::string>& target,
             const std::optional<std::vector<std::string>>& allow, std::optional<bool> minimize_syncs,
             std::optional<bool> certify) {
            return compile(self, aim_of(target, allow, minimize_syncs, certify));
          },
          py::arg("target") = py::none(), py::arg("allow") = py::none(),
          py::arg("minimize_syncs") = py::none(), py::arg("certify") = py::none(),
          "Returns the plan, which was checked and proved.\n\n"
          "target: 'chorale' or 'mscclpp'; default: the program's.\n"
          "allow: proofs and checks of the target to leave out, by Finding.kind.\n"
          "minimize_syncs: remove synchronisations of threads that no proof needs.\n"
          "certify: write a certificate into the plan.\n\n"
          "Raises FindingsError, which has all findings at the lines of their calls.")
      .def(
          "check",
          [](ProgramObject& self, const std::optional<std::string>& target,
             const std::optional<std::vector<std::string>>& allow) {
            const Built built = build(self, aim_of(target, allow, std::nullopt, std::nullopt));
            return listed(explained(built.plan, built.diagnostics));
          },
          py::arg("target") = py::none(), py::arg("allow") = py::none(),
          "Returns the findings that compile() would raise, as chorale.Findings, which print() shows as the "
          "command does. The list is empty if there are none.")
      .def(
          "to_json",
          [](ProgramObject& self, int, const py::kwargs&) {
            return write(*compile(self, default_aim()).plan);
          },
          py::arg("indent") = 2,
          "Returns the text of the compiled plan. The arguments of MSCCL++ are accepted and ignored: the "
          "text has one "
          "operation per line.\n\nRaises FindingsError as compile().")
      .def("_build",
           [](ProgramObject& self) {
             const Built built = build(self, default_aim());
             py::list findings;
             for (const Diagnostic& of : built.diagnostics) {
               const auto line_of = [](const SourceLine& line) {
                 return py::make_tuple(line.file, line.line);
               };
               const auto place_of = [](const std::optional<OpPlace>& at) -> py::object {
                 if (!at) return py::none();
                 return py::make_tuple(at->rank, at->threadblock, at->op);
               };
               py::list notes;
               for (const Note& note : of.notes)
                 notes.append(py::make_tuple(line_of(note.line), place_of(note.at), note.text));
               py::dict one;
               one["check"] = of.check;
               one["line"] = line_of(of.line);
               one["at"] = place_of(of.at);
               one["text"] = of.text;
               one["notes"] = notes;
               one["help"] = of.help;
               one["path"] = of.path;
               findings.append(one);
             }
             Target target = self.program.compile_options().target;
             if (default_aim().target) target = target_of(*default_aim().target);
             return py::make_tuple(write(*built.plan), findings, std::string(target_names[size_t(target)]));
           })
      .def("__repr__", [](const ProgramObject& self) {
        return fmt::format(
            "<chorale.language.CollectiveProgram '{}': {} of {} ranks, {} operations recorded>",
            self.program.name(), self.collective.name, self.collective.ranks, self.program.recorded_ops());
      });
  module.def("_keep_programs", [] { kept().emplace(); });
  module.def("_kept_programs", [] { return kept().value(); });
  module.def(
      "get_program",
      [] {
        if (entered().empty())
          throw std::runtime_error(
              "there is no current program for JSON() or get_program(): call it inside `with "
              "CollectiveProgram(...) as program:`, or take program.to_json() after it");
        return entered().back();
      },
      "Returns the program of the innermost `with` block.");
  module.def(
      "compile_for",
      [](const std::optional<std::string>& target, const std::vector<std::string>& allow, bool minimize_syncs,
         bool certify) {
        if (target) target_of(*target);
        default_aim() = {target, allow, minimize_syncs, certify};
      },
      py::arg("target") = py::none(), py::arg("allow") = std::vector<std::string>(),
      py::arg("minimize_syncs") = false, py::arg("certify") = false,
      "Sets what compile(), to_json() and JSON() do if they are not told: for which executor programs are "
      "compiled, and "
      "which proofs and checks are left out.");
}

}  // namespace chorale::python
