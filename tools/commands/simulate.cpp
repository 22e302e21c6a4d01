// chorale simulate predicts the time of plans on a machine that the user need not have.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <set>

#include "chorale/other_names.hpp"
#include "chorale/profile.hpp"
#include "tools/completion.hpp"
#include "tools/findings.hpp"
#include "tools/plans.hpp"
#include "tools/profile.hpp"
#include "tools/run_options.hpp"
#include "tools/simulate/predictions.hpp"
#include "tools/trace.hpp"

namespace chorale::tools {
namespace {

struct SimulateArguments {
  std::vector<std::string> what, allow;
  Wanted common;  ///< --set and --name
  std::string bytes, machine, topology, dtype = "f32", packet, format = "text", output = "-", trace;
  uint32_t ranks = 0;
  uint32_t max_blocks = 0;
  bool eager = false, all = false, profile = false;
};

/// Refuses a trace or a profile if there is more than one simulation.
void need_one(const SimulateArguments& options, const Predictions& of) {
  if (options.trace.empty() && !options.profile) return;
  const std::string option = options.profile ? "--profile" : "--trace";
  if (of.plans.size() > 1 && of.plans.front().name != of.plans.back().name) {
    throw Failure(Exit::command_wrong,
                  option + " covers one plan, but there are " + std::to_string(of.plans.size()),
                  "name one plan, such as " + of.plans.front().name);
  }
  if (of.sizes.size() == 1) return;
  throw Failure(Exit::command_wrong,
                option + " covers one size, but there are " + std::to_string(of.sizes.size()),
                "name one size, such as --bytes 1M");
}

void predict(Predictions& of, bool spans) {
  Progress progress;
  for (size_t plan = 0; plan < of.plans.size(); ++plan) {
    Simulator simulator(of.plans[plan].plan);
    for (size_t size = 0; size < of.sizes.size(); ++size) {
      progress(of.plans[plan].name + " at " + format_bytes(of.sizes[size]),
               double(of.all.size()) / double(of.plans.size() * of.sizes.size()));
      Prediction one{plan, size, {}, {}};
      try {
        one.simulation = simulator.simulate({.bytes = of.sizes[size],
                                             .dtype = of.dtype,
                                             .packet = of.packet,
                                             .eager = of.eager,
                                             .spans = spans},
                                            of.machine);
      } catch (const UsageError& error) {
        one.refused = error.what();
      }
      of.all.push_back(std::move(one));
    }
  }
  std::stable_sort(of.all.begin(), of.all.end(),
                   [](const Prediction& a, const Prediction& b) { return a.size < b.size; });
}

std::string formatted(const SimulateArguments& options, const Predictions& of) {
  if (options.format == "csv") return csv(of);
  if (options.format == "json") return json(of);
  return text_table(of, {.all = options.all});
}

Exit simulate_it(const SimulateArguments& options) {
  std::vector<NamedFile> read{{"--machine", options.machine}, {"--topology", options.topology}};
  for (const std::string& what : options.what) read.push_back({"", what});
  keep_apart(read, {{"-o", options.output}, {"--trace", options.trace}});
  if (options.output != "-") need_writable(options.output);
  need_trace_file(options.trace);
  Predictions of;
  of.machine = machine_of(options.machine, options.topology);
  of.dtype = carrier_of(options.dtype);
  of.packet = packet_form_of(options.packet);
  of.eager = options.eager;
  of.plans = find_plans(options.what, options.common, options.ranks, options.allow, "chorale simulate");
  // A plan in place only copies less than the plan out of place, so we keep the latter. An algorithm makes
  // both plans; a plan file has one.
  std::set<std::string> out_of_place;
  for (const NamedPlan& named : of.plans) {
    if (!named.plan.inplace) out_of_place.insert(named.name);
  }
  std::erase_if(of.plans, [&](const NamedPlan& named) {
    return named.plan.inplace && out_of_place.contains(named.name);
  });
  if (options.max_blocks != 0) keep_within(of.plans, options.max_blocks);
  const uint32_t ranks = of.plans.front().plan.ranks();
  of.sizes = sizes_for(options.bytes, "1K:1G:4", ranks, of.dtype);
  need_one(options, of);
  predict(of, !options.trace.empty() || options.profile);
  const bool any =
      std::any_of(of.all.begin(), of.all.end(), [](const auto& one) { return one.refused.empty(); });
  if (!any) throw Failure(Exit::command_wrong, of.all.front().refused);
  write_output(options.output, formatted(options, of));
  const Prediction& only = of.all.front();
  const Plan& plan = of.plans[only.plan].plan;
  if (!options.trace.empty()) write_trace(only.simulation.spans, ranks, options.trace, "simulated");
  if (options.profile) {
    const Arguments arguments{.bytes = of.sizes[0], .dtype = of.dtype, .packet = of.packet};
    std::cerr << text_of(profile(plan, arguments, only.simulation.spans, Clocks::one), plan, of.sizes[0],
                         Clocks::one);
  }
  return Exit::well;
}

}  // namespace

Action command::simulate(CLI::App& app) {
  auto options = std::make_shared<SimulateArguments>();
  suggest(app.add_option("what", options->what,
                         "Plan files, algorithms as for run, or a collective: all its shipped plans")
              ->required(),
          names_to_time);
  app.add_option("--bytes", options->bytes, "Sizes of the message, as for run; default 1K:1G:4")
      ->type_name("SIZES");
  app.add_option("--ranks", options->ranks,
                 "Number of ranks, which a program gets as --set ranks=N; default: the plan's")
      ->transform(whole_number(1, 4096))
      ->type_name("N");
  app.add_option("--machine", options->machine, "The machine's times and rates; default: an NVIDIA H200's")
      ->type_name("FILE");
  declare_topology(
      app, options->topology,
      "How its GPUs are connected, such as ring:4 or hosts:2x8/8; default: as the machine's file says, "
      "else behind one switch");
  app.add_option("--dtype", options->dtype, "Type of an element; default f32")
      ->transform(dtype_word())
      ->type_name("NAME");
  app.add_option("--packet", options->packet, "Form of packets; default: by size")
      ->check(one_of("packet form", {std::begin(packet_form_names), std::end(packet_form_names)}))
      ->type_name("NAME");
  app.add_flag("--eager", options->eager, "Launches in a row; default: in a CUDA graph");
  declare_set_and_name(app, options->common);
  declare_allow(app, options->allow);
  app.add_option("--max-blocks", options->max_blocks,
                 "For a collective, only shipped plans with at most so many thread blocks on each rank")
      ->transform(whole_number(1, 4096))
      ->type_name("N");
  app.add_flag("--all", options->all,
               "For a collective, print a row for every shipped plan, not only for the fastest of each size");
  app.add_option("--format", options->format, "Form of the output; default text")
      ->check(one_of("format", {"text", "csv", "json"}))
      ->type_name("NAME");
  app.add_option("-o,--output", options->output, "Write the output to FILE")->type_name("FILE");
  app.add_option("--trace", options->trace,
                 "Write when each operation would run, for Perfetto; one plan and size only")
      ->type_name("FILE");
  app.add_flag("--profile", options->profile,
               "Print where the time would go, by line of the plan's author; one plan and size only");
  declare_quiet(app);
  app.footer(
      "It needs no GPU, and touches no data. Times are of one call of many in a row; algbw and busbw are\n"
      "GB/s as nccl-tests define them, busy is of the busiest GPU's link and memory; with --topology, of "
      "the\n"
      "busiest link, which is named. docs/simulation.md says how far predictions were from measured times,\n"
      "and docs/topologies.md how to write a topology.");
  return [options] { return simulate_it(*options); };
}

}  // namespace chorale::tools
