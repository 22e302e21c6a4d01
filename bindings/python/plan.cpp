#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "chorale/collective.hpp"
#include "chorale/executor.hpp"
#include "chorale/interchange.hpp"
#include "chorale/json.hpp"
#include "chorale/layout.hpp"
#include "chorale/machine.hpp"
#include "chorale/make_plan.hpp"
#include "chorale/msccl_xml.hpp"
#include "chorale/renderer.hpp"
#include "chorale/simulate.hpp"
#include "chorale/world.hpp"
#include "objects.hpp"
#include "tools/differences.hpp"
#include "tools/shown.hpp"
#include "tools/words.hpp"

namespace py = pybind11;

namespace chorale::python {
namespace {

PlanObject load_file(const py::object& file) {
  const auto path = py::module_::import("os").attr("fspath")(file).cast<std::string>();
  try {
    py::gil_scoped_release release;
    return object_of(load(path));
  } catch (const PlanError&) {
    throw;
  } catch (const std::invalid_argument&) {
    throw;
  } catch (const std::runtime_error& error) {
    PyErr_SetString(PyExc_OSError, error.what());
    throw py::error_already_set();
  }
}

/// Refuses a file that is given in place of the name of an algorithm.
void refuse_file(const std::string& name, int ranks) {
  const auto ends = [&](std::initializer_list<const char*> endings) {
    return std::any_of(endings.begin(), endings.end(), [&](const char* end) { return name.ends_with(end); });
  };
  if (ends({".json", ".cbor"}))
    throw std::invalid_argument(fmt::format(
        "'{0}' is a plan file, not the name of a shipped algorithm; Plan.load('{0}') reads it", name));
  if (ends({".cpp", ".cc", ".cxx", ".py"}))
    throw std::invalid_argument(
        fmt::format("'{0}' is a source, not the name of a shipped algorithm; compile it (chorale compile {0} "
                    "--set ranks={1} -o plan.json), and load the plan: Plan.load('plan.json')",
                    name, ranks));
}

PlanObject make(const std::string& name, int ranks, const py::kwargs& settings) {
  refuse_file(name, ranks);
  dsl::Parameters::Settings words;
  for (const auto& [key, value] : settings) {
    const std::string word = py::str(value);
    // C++ writes true and false in lower case.
    words.emplace(key.cast<std::string>(),
                  py::isinstance<py::bool_>(value) ? (value.cast<bool>() ? "true" : "false") : word);
  }
  py::gil_scoped_release release;
  return object_of(make_plan(name, ranks, words));
}

std::string show(const PlanObject& self, std::optional<uint32_t> rank, std::optional<uint32_t> block) {
  const Plan& plan = *self.plan;
  if (rank && *rank >= plan.ranks())
    throw std::invalid_argument(
        fmt::format("there is no rank {}: plan '{}' has ranks 0 to {}", *rank, plan.name, plan.ranks() - 1));
  std::ostringstream text;
  tools::show_plan(plan, text);
  for (const Gpu& gpu : plan.gpus) {
    if (rank && gpu.id != *rank) continue;
    tools::show_rank(gpu, text);
    for (const ThreadBlock& one : gpu.threadblocks) {
      if (!block || one.id == *block) tools::show_block(plan, gpu, one, text);
    }
  }
  return text.str();
}

py::list operations(const PlanObject& self, uint32_t rank) {
  const Plan& plan = *self.plan;
  if (rank >= plan.ranks())
    throw std::invalid_argument(
        fmt::format("there is no rank {}: plan '{}' has ranks 0 to {}", rank, plan.name, plan.ranks() - 1));
  py::list all;
  const Gpu& gpu = plan.gpus[rank];
  for (const ThreadBlock& block : gpu.threadblocks) {
    for (size_t at = 0; at < block.ops.size(); ++at) {
      const SourceLine line = plan.line_of(block.ops[at]);
      py::dict one;
      one["block"] = block.id;
      one["op"] = at;
      one["name"] = std::string(info(block.ops[at].code).name);
      one["operation"] = op_words(gpu, block, block.ops[at]);
      one["file"] = line.line ? py::cast(line.file) : py::none();
      one["line"] = line.line ? py::cast(line.line) : py::none();
      all.append(one);
    }
  }
  return all;
}

PlanObject certify(const PlanObject& self) {
  Plan plan = *self.plan;
  PlanFindings findings;
  {
    py::gil_scoped_release release;
    findings = findings_of(self.plan, Target::chorale, {});
    if (findings.empty()) plan.extension.verified = certificate(plan, prove_plan(plan, {}, true).facts);
  }
  if (!findings.empty()) raise(findings);
  return object_of(std::move(plan));
}

py::dict facts(const PlanObject& self) {
  PlanFindings findings;
  ProofFacts known;
  {
    py::gil_scoped_release release;
    findings = findings_of(self.plan, Target::chorale, {});
    if (findings.empty()) known = prove_plan(*self.plan, {}, true).facts;
  }
  if (!findings.empty()) raise(findings);
  py::dict all;
  all["bounded"] = known.bounded;
  all["launches"] = known.launches;
  all["scratch_copies"] = known.scratch_copies;
  all["entry_guarded"] = known.entry_guarded;
  all["exit_quiescent"] = known.exit_quiescent;
  all["rounding"] = known.rounding;
  all["order"] = known.order;
  all["other_order"] = known.other_order;
  all["quantised"] = quantised_words(known.quantised);
  all["error_bound"] = error_bound(known.quantised);
  return all;
}

Simulation simulate_one(const PlanObject& self, uint64_t bytes, const std::string& dtype,
                        const std::optional<std::string>& packet, bool eager, bool spans,
                        const std::string& machine, const std::string& topology) {
  const SimulatedCall call{
      .bytes = bytes, .dtype = dtype_of(dtype), .packet = packet_of(packet), .eager = eager, .spans = spans};
  py::gil_scoped_release release;
  Machine on = load_machine(machine);
  if (!topology.empty()) on.topology = load_topology(topology);
  return simulate(*self.plan, call, on);
}

/// Exports a plan, imports the result and proves it.
std::string to_msccl_xml(const PlanObject& self) {
  PlanFindings findings;
  std::string text;
  {
    py::gil_scoped_release release;
    Diagnostics found = chorale::check(*self.plan);
    if (found.empty()) text = export_msccl_xml(*self.plan, found);
    if (found.empty()) {
      auto imported = std::make_shared<Plan>(import_msccl_xml(text, "algorithm.xml", found));
      if (found.empty()) found = chorale::compile(*imported);
      findings = explained(imported, found);
    } else {
      findings = explained(self.plan, found);
    }
  }
  if (!findings.empty()) raise(findings);
  return text;
}

MessageGraph graph_of(const PlanObject& self, uint64_t bytes, const std::string& dtype,
                      const std::optional<std::string>& packet, const std::optional<std::string>& machine) {
  const SimulatedCall call{.bytes = bytes, .dtype = dtype_of(dtype), .packet = packet_of(packet)};
  const Diagnostics found = chorale::check(*self.plan);
  if (!found.empty()) raise(explained(self.plan, found));
  py::gil_scoped_release release;
  const std::optional<Machine> of = machine ? std::optional(load_machine(*machine)) : std::nullopt;
  return message_graph(*self.plan, call, of ? &*of : nullptr);
}

std::string to_goal(const PlanObject& self, uint64_t bytes, const std::string& dtype,
                    const std::optional<std::string>& packet, const std::optional<std::string>& machine) {
  return write_goal(graph_of(self, bytes, dtype, packet, machine));
}

py::list to_chakra(const PlanObject& self, uint64_t bytes, const std::string& dtype,
                   const std::optional<std::string>& packet, const std::optional<std::string>& machine) {
  const MessageGraph graph = graph_of(self, bytes, dtype, packet, machine);
  py::list traces;
  for (uint32_t rank = 0; rank < graph.ranks.size(); ++rank)
    traces.append(py::bytes(write_chakra(graph, rank)));
  return traces;
}

/// Runs a plan once, with each rank on a thread.
void run(const PlanObject& self, const py::list& inputs, const py::list& outputs, uint64_t bytes,
         const std::string& dtype, const std::optional<std::string>& op,
         const std::optional<std::string>& packet, std::optional<uint64_t> seed, const Settings& settings) {
  const Plan& plan = *self.plan;
  std::vector<Memory> in, out;
  std::vector<Arguments> arguments;
  const MessageSizes sizes = message_sizes(plan, bytes, dtype_of(dtype));
  for (size_t rank = 0; rank < plan.ranks(); ++rank) {
    in.push_back(memory_of(inputs[rank], fmt::format("input of rank {}", rank)));
    out.push_back(memory_of(outputs[rank], fmt::format("output of rank {}", rank)));
    if (in.back().bytes != sizes.input || out.back().bytes != sizes.output)
      throw std::invalid_argument(fmt::format(
          "rank {} has an input of {} bytes and an output of {}, but a message of {} bytes of plan "
          "'{}' has inputs of {} bytes and outputs of {}",
          rank, in.back().bytes, out.back().bytes, bytes, plan.name, sizes.input, sizes.output));
    if (in.back().on_gpu || out.back().on_gpu)
      throw std::invalid_argument(fmt::format(
          "the arrays of rank {} are on a GPU, and run() computes on the CPU; use an Executor on GPUs",
          rank));
    if (!out.back().writable)
      throw std::invalid_argument(fmt::format("output of rank {} is read-only; pass a writable array", rank));
    arguments.push_back({.in = in.back().data,
                         .out = out.back().data,
                         .bytes = bytes,
                         .dtype = dtype_of(dtype),
                         .op = op_of(op),
                         .packet = packet_of(packet)});
  }
  Config config = config_of(settings);
  config.backend = "cpu";
  if (seed) config.seed = seed;
  py::gil_scoped_release release;
  run_local(
      int(plan.ranks()),
      [&](World& world) {
        Executor executor(world, config);
        executor.execute(plan, arguments[size_t(world.rank())]);
        world.barrier();  // peers may still read this rank's memory
      },
      config.local());
}

std::string describe_span(const TraceSpan& of) {
  const std::string line = of.line.line ? fmt::format(" at {}:{}", of.line.file, of.line.line) : "";
  return fmt::format("<chorale.TraceSpan rank {}, block {}: {}{}, {:.2f} to {:.2f} us>", of.rank, of.block,
                     of.name, line, double(of.begin_ns) / 1e3, double(of.end_ns) / 1e3);
}

std::string describe(const Simulation& of) {
  return fmt::format("<chorale.Simulation of {:.2f} us per call, {} operations>", of.ns / 1e3, of.ops);
}

}  // namespace

std::optional<PacketForm> packet_of(const std::optional<std::string>& word) {
  if (!word) return std::nullopt;
  if (const std::optional<PacketForm> form = packet_form_of(*word)) return form;
  throw std::invalid_argument(fmt::format("there is no form of packets '{}'; forms are {}", *word,
                                          fmt::join(packet_form_names, ", ")));
}

void declare_plan(py::module_& module) {
  py::class_<PlanObject>(module, "Plan",
                         "A plan says what every thread block of every rank does in one collective. It does "
                         "not change.\n\nGet one from load(), from_json(), make(), or a program's compile().",
                         py::dynamic_attr())
      .def_static(
          "load", &load_file, py::arg("path"),
          "Reads a plan file, JSON or CBOR.\n\nRaises OSError if it cannot be read, PlanError if it holds no "
          "plan.")
      .def_static(
          "from_json",
          [](const py::object& text) {
            std::string bytes =
                py::isinstance<py::bytes>(text) ? std::string(py::bytes(text)) : text.cast<std::string>();
            py::gil_scoped_release release;
            return object_of(read(bytes));
          },
          py::arg("text"),
          "Reads a plan from JSON text, or from the bytes of JSON or CBOR.\n\nRaises PlanError.")
      .def_static(
          "make", &make, py::arg("name"), py::arg("ranks"),
          "Makes the plan of a shipped algorithm, such as 'allreduce_ring', for a number of ranks. Keywords "
          "are further parameters of the algorithm, such as instances=16.\n\nRaises ValueError.")
      .def_property_readonly("name", [](const PlanObject& self) { return self.plan->name; })
      .def_property_readonly(
          "collective", [](const PlanObject& self) { return self.plan->collective; },
          "The collective that it computes: 'allreduce', 'allgather', ..., 'custom' or 'test'.")
      .def_property_readonly("ranks", [](const PlanObject& self) { return self.plan->ranks(); })
      .def_property_readonly(
          "protocol",
          [](const PlanObject& self) { return self.plan->protocol == Protocol::LL ? "LL" : "Simple"; },
          "'LL' if it sends packets, else 'Simple'.")
      .def_property_readonly(
          "in_place", [](const PlanObject& self) { return self.plan->inplace; },
          "True if input and output are one memory.")
      .def_property_readonly(
          "threads_per_block", [](const PlanObject& self) { return self.plan->threads_per_block; },
          "Threads of a thread block. On GPUs Chorale uses at most 512 of them.")
      .def_property_readonly(
          "min_message_bytes", [](const PlanObject& self) { return self.plan->min_message_size; },
          "Least size of a message, in bytes.")
      .def_property_readonly(
          "max_message_bytes", [](const PlanObject& self) { return self.plan->max_message_size; },
          "Largest size of a message, in bytes.")
      .def_property_readonly(
          "root", [](const PlanObject& self) { return self.plan->extension.root; },
          "The rank whose input a broadcast sends; 0 for other collectives.")
      .def_property_readonly(
          "thread_blocks",
          [](const PlanObject& self) {
            size_t most = 0;
            for (const Gpu& gpu : self.plan->gpus) most = std::max(most, gpu.threadblocks.size());
            return most;
          },
          "Thread blocks of the rank that has the most.")
      .def_property_readonly(
          "operation_count",
          [](const PlanObject& self) {
            uint64_t all = 0;
            for (const Gpu& gpu : self.plan->gpus) {
              for (const ThreadBlock& block : gpu.threadblocks) all += block.ops.size();
            }
            return all;
          },
          "Operations of all thread blocks of all ranks.")
      .def_property_readonly(
          "certified", [](const PlanObject& self) { return refute_certificate(*self.plan).empty(); },
          "True if it has a certificate that fits it.")
      .def_property_readonly(
          "headline", [](const PlanObject& self) { return tools::headline(*self.plan); },
          "One line that describes the plan: its collective, ranks and protocol.")
      .def("operations", &operations, py::arg("rank"),
           "Returns the operations of a rank: dictionaries with block, op (position in the block), name, "
           "operation "
           "(in words), file and line of the author (None if unknown).")
      .def(
          "check",
          [](const PlanObject& self, const std::string& target, const std::vector<std::string>& allow) {
            PlanFindings findings;
            {
              py::gil_scoped_release release;
              findings = findings_of(self.plan, target_of(target), allow);
            }
            return listed(findings);
          },
          py::arg("target") = "chorale", py::arg("allow") = std::vector<std::string>(),
          "Returns the findings of the checks; if there are none, those of the proofs and of the checks of "
          "the "
          "target. The list is empty if the plan is right. It is chorale.Findings, which print() shows as "
          "the command does.\n\n"
          "target: the executor that runs the plan, 'chorale' or 'mscclpp'.\n"
          "allow: proofs and checks of the target to leave out, by Finding.kind; 'proofs' for all proofs.\n\n"
          "Raises ValueError for an unknown name.")
      .def("certify", &certify,
           "Returns the plan with a certificate of what was proved.\n\nRaises FindingsError if it is wrong.")
      .def("facts", &facts,
           "Returns what is true of a plan that was proved, as docs/proof.md describes it: a dictionary with "
           "bounded, "
           "launches, scratch_copies, entry_guarded, exit_quiescent, rounding, order, other_order, "
           "quantised, error_bound.\n\nRaises "
           "FindingsError if it is wrong.")
      .def("show", &show, py::arg("rank") = py::none(), py::arg("block") = py::none(),
           "Returns the plan in words, as `chorale show` prints it.")
      .def(
          "diff",
          [](const PlanObject& self, const PlanObject& other, bool canonical) {
            py::gil_scoped_release release;
            return tools::differences(*self.plan, *other.plan, canonical);
          },
          py::arg("other"), py::arg("canonical") = false,
          "Returns the differences as lines, '- ' before what only this plan has and '+ ' before what only "
          "the other "
          "has; '' if there are none. With canonical, ids may differ that mean the same.")
      .def(
          "to_json", [](const PlanObject& self) { return write(*self.plan); },
          "Returns the text of a plan file, in MSCCL++'s schema.")
      .def(
          "to_cbor",
          [](const PlanObject& self) {
            std::ostringstream bytes;
            write_cbor(*self.plan, bytes);
            return py::bytes(bytes.str());
          },
          "Returns the bytes of a plan file in CBOR.")
      .def(
          "to_msccl_xml", &to_msccl_xml,
          "Returns the plan as an algorithm of MSCCL, which is proved first (docs/interchange.md).\n\nRaises "
          "FindingsError if MSCCL cannot express the plan.")
      .def(
          "message_sizes",
          [](const PlanObject& self, uint64_t bytes, const std::string& dtype) {
            const MessageSizes sizes = message_sizes(*self.plan, bytes, dtype_of(dtype));
            return std::pair(sizes.input, sizes.output);
          },
          py::arg("bytes"), py::arg("dtype") = "f32",
          "Returns the bytes of a rank's input and output for a message. The size of a message is that of "
          "the input, "
          "and for all-gather that of the output.\n\nRaises UsageError if the plan does not take that size.")
      .def_property_readonly(
          "_counts_output",
          [](const PlanObject& self) { return collective_info(self.plan->collective).counts_output(); })
      .def("_simulate", &simulate_one)
      .def("_to_goal", &to_goal)
      .def("_to_chakra", &to_chakra)
      .def("_run", &run)
      .def("__repr__", [](const PlanObject& self) {
        return fmt::format("<chorale.Plan '{}': {}>", self.plan->name, tools::headline(*self.plan));
      });

  py::class_<LinkUse>(module, "LinkUse", "Traffic of one GPU's link and memory in one call.")
      .def_readonly("bytes_out", &LinkUse::bytes_out, "Bytes that left the rank.")
      .def_readonly("bytes_in", &LinkUse::bytes_in, "Bytes that came to the rank.")
      .def_readonly("out_busy_ns", &LinkUse::out_busy_ns,
                    "Time in which the outgoing link was busy, in nanoseconds.")
      .def_readonly("in_busy_ns", &LinkUse::in_busy_ns,
                    "Time in which the incoming link was busy, in nanoseconds.")
      .def_readonly("memory_busy_ns", &LinkUse::memory_busy_ns,
                    "Time in which the rank's memory was busy, in nanoseconds.");
  py::class_<TraceSpan>(module, "TraceSpan", "Says when one operation of a thread block ran, or would run.")
      .def_readonly("plan", &TraceSpan::plan)
      .def_readonly("rank", &TraceSpan::rank)
      .def_readonly("block", &TraceSpan::block)
      .def_readonly("op", &TraceSpan::op, "Position in the thread block's operations.")
      .def_property_readonly("name", [](const TraceSpan& self) { return std::string(self.name); })
      .def_property_readonly("file", [](const TraceSpan& self) { return self.line.file; })
      .def_property_readonly(
          "line", [](const TraceSpan& self) { return self.line.line; },
          "Number of the author's line; 0 if unknown.")
      .def_readonly("launch", &TraceSpan::launch, "Number of the launch of this plan and size, from 1.")
      .def_readonly("begin_ns", &TraceSpan::begin_ns, "When it began, in nanoseconds.")
      .def_readonly("end_ns", &TraceSpan::end_ns, "When it ended, in nanoseconds.")
      .def_readonly("bytes", &TraceSpan::bytes, "Size of the message.")
      .def("__repr__", &describe_span);
  py::class_<Simulation>(module, "Simulation",
                         "The predicted time of one call, when many calls follow each other.")
      .def_readonly("ns", &Simulation::ns, "Nanoseconds per call.")
      .def_property_readonly(
          "us", [](const Simulation& self) { return self.ns / 1e3; }, "Microseconds per call.")
      .def_readonly("launch_ns", &Simulation::launch_ns, "The part of ns that passes between launches.")
      .def_readonly("operation_count", &Simulation::ops, "Number of operations that ran.")
      .def_readonly("links", &Simulation::links, "LinkUse by rank.")
      .def_readonly("spans", &Simulation::spans, "TraceSpans; empty unless spans=True.")
      .def("__repr__", &describe);
}

}  // namespace chorale::python
