// chorale convert writes a plan file in its canonical text, as CBOR, or in the format of another tool.

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "chorale/checks.hpp"
#include "chorale/compile.hpp"
#include "chorale/interchange.hpp"
#include "chorale/msccl_xml.hpp"
#include "chorale/other_names.hpp"
#include "chorale/packet_form.hpp"
#include "tools/command.hpp"
#include "tools/findings.hpp"
#include "tools/plans.hpp"
#include "tools/programs.hpp"

namespace chorale::tools {
namespace {

struct ConvertArguments {
  std::string plan, to = "plan", output = "-", bytes, dtype, packet, machine;
};

bool has_size(const ConvertArguments& options) { return options.to == "goal" || options.to == "chakra"; }

/// Refuses options that the format does not use, because the user expects something of them.
void need_options(const ConvertArguments& options) {
  if (has_size(options)) {
    if (options.bytes.empty()) {
      throw Failure(Exit::command_wrong, "--to " + options.to + " needs the size of a message",
                    "name one, such as --bytes 1M");
    }
    if (options.to == "chakra" && options.output == "-") {
      throw Failure(Exit::command_wrong, "--to chakra writes a file for each rank, and there is no -o",
                    "with -o trace, the file of rank 0 is trace.0.et");
    }
    return;
  }
  const NamedFile given[] = {{"--bytes", options.bytes},
                             {"--dtype", options.dtype},
                             {"--packet", options.packet},
                             {"--machine", options.machine}};
  for (const auto& [option, value] : given) {
    if (value.empty()) continue;
    throw Failure(Exit::command_wrong, option + " is for --to goal and --to chakra",
                  options.to == "plan" ? "a plan is for messages of all sizes"
                                       : "an algorithm of MSCCL is for messages of all sizes");
  }
}

/// Returns the text of the MSCCL algorithm of a plan. The import reads it back and proves it first.
std::string msccl_text(const Plan& plan) {
  Diagnostics findings;
  const std::string text = export_msccl_xml(plan, findings);
  if (report(plan, findings))
    throw Failure(Exit::plan_wrong, "MSCCL cannot express plan '" + plan.name + "'");
  Plan imported = import_msccl_xml(text, "algorithm.xml", findings);
  if (findings.empty()) findings = chorale::compile(imported);
  if (report(imported, findings)) {
    throw Failure(Exit::plan_wrong, "the algorithm that MSCCL would run is not right",
                  "signals that carry no data are left out, and this plan needs some of them");
  }
  return text;
}

MessageGraph graph_of(const ConvertArguments& options, const Plan& plan) {
  SimulatedCall call;
  call.bytes = parse_bytes(options.bytes);
  call.dtype = carrier_of(options.dtype.empty() ? "f32" : options.dtype);
  call.packet = packet_form_of(options.packet);
  const std::optional<Machine> machine =
      options.machine.empty() ? std::nullopt : std::optional(machine_of(options.machine));
  try {
    return message_graph(plan, call, machine ? &*machine : nullptr);
  } catch (const UsageError& error) {
    throw Failure(Exit::command_wrong, error.what());
  }
}

Exit convert_it(const ConvertArguments& options) {
  need_options(options);
  if (options.to == "plan") {
    write_plan(options.output, load_plan(options.plan));
    return Exit::well;
  }
  keep_apart({{"", options.plan}, {"--machine", options.machine}}, {{"-o", options.output}});
  const Plan plan = load_plan(options.plan);
  if (report(plan, chorale::check(plan))) return Exit::plan_wrong;
  if (options.to == "msccl-xml") {
    write_output(options.output, msccl_text(plan));
    return Exit::well;
  }
  const MessageGraph graph = graph_of(options, plan);
  if (options.to == "chakra") {
    for (uint32_t rank = 0; rank < graph.ranks.size(); ++rank)
      write_output(options.output + "." + std::to_string(rank) + ".et", write_chakra(graph, rank));
    return Exit::well;
  }
  try {
    write_output(options.output, write_goal(graph));
  } catch (const UsageError& error) {
    throw Failure(Exit::plan_wrong, error.what());
  }
  return Exit::well;
}

}  // namespace

Action command::convert(CLI::App& app) {
  auto options = std::make_shared<ConvertArguments>();
  app.add_option("plan", options->plan, "A plan file; - is standard input")->required();
  app.add_option(
         "--to", options->to,
         "Format: plan, msccl-xml (an algorithm of MSCCL), goal (for LogGOPSim and ATLAHS) or chakra (for "
         "ASTRA-sim); default plan")
      ->check(one_of("format", {"plan", "msccl-xml", "goal", "chakra"}))
      ->type_name("NAME");
  app.add_option("--bytes", options->bytes, "For goal and chakra: the size of the message, such as 1M")
      ->type_name("SIZE");
  app.add_option("--dtype", options->dtype, "For goal and chakra: the type of an element; default f32")
      ->transform(dtype_word())
      ->type_name("NAME");
  app.add_option("--packet", options->packet, "For goal and chakra: the form of packets; default: by size")
      ->check(one_of("packet form", {std::begin(packet_form_names), std::end(packet_form_names)}))
      ->type_name("NAME");
  app.add_option(
         "--machine", options->machine,
         "For goal and chakra: the machine that the times of work on a GPU are of; default: they are 0")
      ->type_name("FILE");
  app.add_option(
         "-o,--output", options->output,
         "Write to FILE; default -, standard output; a plan as CBOR if the name ends in .cbor; chakra: to "
         "FILE.0.et, FILE.1.et and so on")
      ->type_name("FILE");
  app.footer(
      "A plan is written without being checked: chorale check does that. An algorithm of MSCCL is proved\n"
      "first. See docs/interchange.md.");
  return [options] { return convert_it(*options); };
}

}  // namespace chorale::tools
