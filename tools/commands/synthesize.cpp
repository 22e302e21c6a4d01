// chorale synthesize finds a plan for a collective on a topology.

#include "chorale/synthesize.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "tools/bench/results.hpp"
#include "tools/command.hpp"
#include "tools/completion.hpp"
#include "tools/plans.hpp"
#include "tools/programs.hpp"
#include "tools/progress.hpp"
#include "tools/run_options.hpp"

namespace chorale::tools {
namespace {

struct SynthesizeArguments {
  SynthesisCall call;
  std::string topology, machine, bytes = "1G", dtype = "f32", output = "-";
  bool all = false, only_found = false;
};

/// Returns the shipped plans for as many ranks as the call has.
std::vector<OtherPlan> shipped(const SynthesizeArguments& options, size_t ranks) {
  std::vector<OtherPlan> plans;
  if (options.only_found) return plans;
  for (NamedPlan& named : shipped_plans(options.call.collective, uint32_t(ranks)))
    if (!named.plan.inplace) plans.push_back({named.name, std::move(named.plan)});
  return plans;
}

std::string table_of(const Synthesis& found, bool all) {
  std::string text;
  const size_t most = all ? found.trials.size() : 5;
  for (size_t at = 0; at < found.trials.size() && at < most; ++at) {
    const SynthesisTrial& trial = found.trials[at];
    if (trial.refused.empty()) {
      text += fmt::format("{:>12}  {}\n", time_word(trial.ns / 1e3), trial.name);
    } else if (all) {
      text += fmt::format("{:>12}  {}: {}\n", "-", trial.name, trial.refused);
    }
  }
  return text;
}

Exit synthesize_it(SynthesizeArguments options) {
  keep_apart({{"--topology", options.topology}, {"--machine", options.machine}}, {{"-o", options.output}});
  if (options.output != "-") need_writable(options.output);
  const Machine machine = machine_of(options.machine, options.topology);
  const Topology& topology = machine.topology;
  const size_t ranks = options.call.group.empty() ? topology.gpus().size() : options.call.group.size();
  options.call.dtype = carrier_of(options.dtype);
  const std::vector<uint64_t> sizes = sizes_for(options.bytes, "1G", uint32_t(ranks), options.call.dtype);
  if (sizes.size() != 1) {
    throw Failure(Exit::command_wrong,
                  fmt::format("a plan is found for one size, but there are {}", sizes.size()),
                  "name one size, such as --bytes 1M");
  }
  options.call.bytes = sizes.front();
  Synthesis found;
  {
    Progress progress;
    found = synthesize(
        options.call, machine, topology, shipped(options, ranks), [&](double best_ns, double share) {
          progress(best_ns > 0 ? "best so far " + time_word(best_ns / 1e3) + " us" : "searching", share);
        });
  }
  std::cerr << found.explanation << "# predicted (us)\n" << table_of(found, options.all);
  write_plan(options.output, found.plan);
  return Exit::well;
}

}  // namespace

Action command::synthesize(CLI::App& app) {
  auto options = std::make_shared<SynthesizeArguments>();
  const auto known = synthesized_collectives();
  const std::vector<std::string> names(known.begin(), known.end());
  suggest(app.add_option("collective", options->call.collective, "The collective, such as allreduce")
              ->required()
              ->check(one_of("collective", names))
              ->type_name("NAME"),
          [names] { return names; });
  declare_topology(app, options->topology,
                   "How the GPUs are connected: a file, or a shipped topology such as switch:8")
      ->required();
  app.add_option("--bytes", options->bytes, "Size of the message, as for run; default 1G")->type_name("SIZE");
  app.add_option("--dtype", options->dtype, "Type of an element; default f32")
      ->transform(dtype_word())
      ->type_name("NAME");
  app.add_option("--root", options->call.root, "Root of a broadcast or reduce; default 0")->type_name("RANK");
  app.add_option("--group", options->call.group, "GPUs that are ranks, by rank: 0,2,4; default: all")
      ->delimiter(',')
      ->type_name("LIST");
  app.add_option("--machine", options->machine, "The machine's times and rates; default: an NVIDIA H200's")
      ->type_name("FILE");
  app.add_option("--seed", options->call.seed, "Number from which choices are drawn; default 1")
      ->type_name("N");
  app.add_option("--limit", options->call.seconds, "Seconds that the search may take; default 60")
      ->transform(whole_number(1, 86400))
      ->type_name("SECONDS");
  app.add_flag("--only-found", options->only_found,
               "Leave out the shipped plans, which are tried too otherwise");
  app.add_flag("--all", options->all, "List every plan that was tried, and why it was refused");
  declare_quiet(app);
  declare_plan_output(app, options->output);
  return [options] { return synthesize_it(*options); };
}

}  // namespace chorale::tools
