// chorale bench times plans, eagerly and in CUDA graphs, with NCCL beside them.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "chorale/layout.hpp"
#include "chorale/needs.hpp"
#include "chorale/reduction_order.hpp"
#include "tools/bench/live.hpp"
#include "tools/bench/nccl.hpp"
#include "tools/bench/peer_programs.hpp"
#include "tools/bench/results.hpp"
#include "tools/bench/subject.hpp"
#include "tools/completion.hpp"
#include "tools/plans.hpp"
#include "tools/run_options.hpp"
#include "tools/trace.hpp"
#include "tools/tuned.hpp"

namespace chorale::tools {
namespace {

struct BenchArguments {
  std::vector<std::string> what, peers;
  Wanted common;  ///< --set and --name
  RunOptions run;
  std::string bytes, format = "text", output, markdown, tuned, tuned_out, commit, trace;
  unsigned warmup = 5, calls = 50;
  std::vector<uint32_t> max_blocks;
  bool eager = false, graph = false, no_nccl = false, all = false, rank_order = false, no_times = false;
  ProfileOptions profile;
};

/// Keeps only the subjects that a table chooses, with the packet form that the table names, at the sizes for
/// which it chooses them.
void keep_chosen(BenchRequest& request, const TunedPlans& plans) {
  std::vector<Subject> chosen;
  for (const Subject& subject : request.subjects) {
    if (subject.in_place) continue;
    for (size_t which = 0; which < request.sizes.size(); ++which) {
      const TunedPlans::Choice choice = plans.choose(subject.collective, request.sizes[which], request.dtype);
      if (choice.name != subject.name) continue;
      const std::optional<PacketForm> form = request.packet ? request.packet : choice.packet;
      auto known = std::find_if(chosen.begin(), chosen.end(), [&](const Subject& other) {
        return other.name == subject.name && other.packet == form;
      });
      if (known == chosen.end()) {
        known = chosen.insert(chosen.end(), subject);
        known->packet = form;
        for (Case& one : known->cases) one.refused = "the table chooses another plan";
      }
      known->cases[which] = subject.cases[which];
    }
  }
  request.subjects = std::move(chosen);
}

/// Returns the limits of thread blocks, the lowest first: those of the command line, or else of the settings.
std::vector<uint32_t> limits_of(const BenchArguments& options, const Config& config) {
  std::vector<uint32_t> limits = options.max_blocks;
  if (limits.empty()) limits.push_back(config.max_blocks);
  std::sort(limits.begin(), limits.end());
  limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
  if (limits.front() != 0) return limits;
  if (limits.size() > 1) {
    throw Failure(Exit::command_wrong, "--max-blocks has 0, which means any number, among other limits",
                  "leave it out; without --max-blocks plans may have any number of thread blocks");
  }
  return {};
}

/// Refuses limits that NCCL would not keep to.
void require_limits_of_nccl(const BenchRequest& request, bool nccl) {
  const char* const variable = variable_for_ctas();
  if (!nccl || request.limits.empty() || !variable) return;
  throw Failure(Exit::command_wrong,
                std::string(variable) + " is set, and NCCL keeps to it instead of the limits of --max-blocks",
                "unset it, or leave NCCL out with --no-nccl");
}

/// Adds the peers for every collective, in place or not, for which a plan is timed.
void add_peers(BenchRequest& request, bool nccl, const std::vector<std::string>& programs) {
  std::vector<Subject> others;
  const auto add = [&](Peer peer, const PeerProgram& program, uint32_t limit = 0) {
    for (const Subject& subject : request.subjects) {
      const bool known = std::any_of(others.begin(), others.end(), [&](const Subject& other) {
        return other.name == program.name && other.collective == subject.collective &&
               other.in_place == subject.in_place;
      });
      // Copy engines cannot add.
      if (known || (peer == Peer::nccl_zero_cta && collective_reduces(subject.collective))) continue;
      Subject& other = others.emplace_back(subject);  // the plan tells the oracle what is right
      other.name = program.name;
      other.peer = peer;
      other.command = program.command;
      other.blocks = limit;
      other.is_default.clear();
      if (peer == Peer::program) continue;
      const std::string why = Nccl::refuses(subject.collective, subject.in_place, request.dtype);
      for (Case& one : other.cases) {
        if (!why.empty()) one.refused = why;
      }
    }
  };
  for (const std::string& word : programs) {
    const PeerProgram program = peer_program(word);
    const size_t before = others.size();
    add(Peer::program, program);
    if (others.size() == before)
      throw Failure(Exit::command_wrong, "two --peer have the name '" + program.name + "'");
  }
  if (nccl && request.limits.empty())
    for (const Peer peer : {Peer::nccl, Peer::nccl_symmetric, Peer::nccl_zero_cta})
      add(peer, {peer_names[size_t(peer)], ""});
  for (const uint32_t limit : nccl ? request.limits : std::vector<uint32_t>{}) {
    const char* const name = peer_names[size_t(Peer::nccl)];
    add(Peer::nccl, {fmt::format("{}, at most {} CTAs", name, limit), ""}, limit);
  }
  request.first_plan = others.size();
  request.subjects.insert(request.subjects.begin(), others.begin(), others.end());
}

/// Returns the forms of packets with which a plan is timed. A shipped plan of a collective is timed on GPUs
/// with every form, unless a form or a table is named.
std::vector<std::optional<PacketForm>> forms_of(const BenchArguments& options, const BenchRequest& request,
                                                const NamedPlan& named) {
  if (request.packet || request.backend != "cuda" || !options.tuned.empty() || !named.of_collective ||
      named.plan.protocol != Protocol::LL)
    return {request.packet};
  return {PacketForm::ll8, PacketForm::ll16, PacketForm::ll128};
}

/// Marks the plans that an application gets without a table. Not every collective has defaults.
void mark_defaults(BenchRequest& request, const TunedFor& machine) {
  const TunedPlans without_table(TuneTable(), shipped_folder(), machine);
  for (Subject& subject : request.subjects) {
    try {
      for (const uint64_t bytes : request.sizes) {
        const std::string name = without_table.choose(subject.collective, bytes, request.dtype).name;
        const bool form =
            !subject.packet || request.packet || *subject.packet == packet_form_by_size(*subject.plan, bytes);
        subject.is_default.push_back(name == subject.name && form);
      }
    } catch (const UsageError&) {  // the collective has no defaults
      subject.is_default.clear();
    }
  }
}

BenchRequest request_of(const BenchArguments& options, const Config& config,
                        const std::vector<NamedPlan>& plans, TunedFor machine) {
  const bool cuda = config.backend.value == "cuda";
  BenchRequest request;
  request.ranks = plans.front().plan.ranks();
  request.dtype = options.run.type();
  request.sizes = sizes_for(options.bytes, cuda ? "1K:1G" : "1K:1M:4", request.ranks, request.dtype);
  request.override_op = options.run.reduce_op(
      std::any_of(plans.begin(), plans.end(), [](const NamedPlan& named) { return reduces(named.plan); }));
  request.packet = options.run.packet_form();
  request.backend = config.backend.value;
  request.eager = options.eager || !options.graph;
  request.graph = options.graph || !options.eager;
  request.trace = options.trace;
  const size_t distinct = count_distinct(plans);
  if ((!request.trace.empty() || options.profile.profile) && distinct > 1) {
    throw Failure(Exit::command_wrong,
                  std::string(options.profile.profile ? "--profile" : "--trace") +
                      " covers one plan, but there are " + std::to_string(distinct),
                  "name one plan; tracing slows a plan, so do not compare its times");
  }
  request.processes = options.run.as_processes(config);
  request.warmup = options.warmup;
  request.calls = options.calls;
  request.limits = limits_of(options, config);
  if (request.limits.size() > 1) request.budget_us /= 4;  // NCCL is timed so many times
  if (options.graph && !cuda) {
    throw Failure(Exit::command_wrong, "the CPU has no CUDA graphs",
                  "leave --graph out, or use --backend cuda");
  }
  request.graph = request.graph && cuda;
  for (const NamedPlan& named : plans) {
    // A proof finds the order, which takes time, so it runs only if the order is needed.
    const bool wanted = options.rank_order || !options.tuned_out.empty();
    const bool rank_order = wanted && in_rank_order(named.plan);
    if (options.rank_order && !rank_order) continue;
    const Subject subject = subject_of(named, request);
    for (const std::optional<PacketForm> form : forms_of(options, request, named)) {
      Subject& added = request.subjects.emplace_back(subject);
      added.rank_order = rank_order;
      added.packet = form;
    }
  }
  if (cuda && options.tuned.empty()) mark_defaults(request, machine);
  if (request.subjects.empty())
    throw Failure(Exit::command_wrong, "none of these plans adds up in the order of the ranks",
                  "chorale check PLAN --certify FILE says in which order a plan does");
  if (!options.tuned.empty()) {
    if (!std::all_of(options.what.begin(), options.what.end(), names_collective)) {
      throw Failure(Exit::command_wrong, "--tuned chooses plans, so only collectives can be named with it");
    }
    machine.rank_order = options.rank_order;
    keep_chosen(request, tuned_plans(options.tuned, machine,
                                     tune_command(options.what, machine, options.run.type(), options.tuned)));
    if (request.subjects.empty()) {
      throw Failure(Exit::command_wrong,
                    "the table '" + options.tuned + "' chooses none of the shipped plans" +
                        (options.rank_order ? " that add up in the order of the ranks" : ""));
    }
  }
  require_limits_of_nccl(request, cuda && !options.no_nccl);
  add_peers(request, cuda && !options.no_nccl, options.peers);
  return request;
}

/// Refuses multicast when plans are timed beside NCCL, because NVLink multicast is off for NCCL: see
/// quieten_nccl().
void refuse_multicast(const Config& config) {
  if (config.backend.value != "cuda" || config.switch_channels.value != "multicast") return;
  throw Failure(Exit::command_wrong,
                "bench keeps NVLink multicast off, but switch_channels = multicast (" +
                    config.switch_channels.from + ")",
                "time this with chorale run, or take switch_channels = peer");
}

std::string formatted(const BenchArguments& options, const BenchResults& results) {
  if (options.format == "csv") return csv(results);
  if (options.format == "json") return json(results);
  return text_table(results, {.all = options.all, .times = !options.no_times});
}

/// Returns the files that are written as results come in.
std::vector<LiveResults::File> files_of(const BenchArguments& options) {
  std::vector<LiveResults::File> files;
  if (!options.output.empty()) {
    files.push_back(
        {options.output, [&options](const BenchResults& results) { return formatted(options, results); }});
  }
  if (!options.markdown.empty()) {
    const std::string command = command_line();
    files.push_back({options.markdown,
                     [command](const BenchResults& results) { return markdown(results, command); }, true});
  }
  return files;
}

Exit bench_it(BenchArguments options) {
  if (options.no_times && (options.format != "text" || !options.markdown.empty())) {
    throw Failure(Exit::command_wrong,
                  "--no-times is for --format text, but " +
                      (options.markdown.empty() ? "--format is " + options.format : "there is --markdown"),
                  "leave it out: the other formats are for programs, which select what they need");
  }
  std::vector<NamedFile> read{{"--tuned", options.tuned},
                              {"--machine", options.profile.machine.value_or("")}};
  for (const std::string& what : options.what) read.push_back({"", what});
  keep_apart(read, {{"-o", options.output},
                    {"--markdown", options.markdown},
                    {"--tuned-out", options.tuned_out},
                    {"--trace", options.trace}});
  for (const std::string* path : {&options.output, &options.markdown, &options.tuned_out})
    need_writable(*path);
  Config config = options.run.config();
  refuse_multicast(config);
  trace_to(config, options.trace);
  profile_by(config, options.profile.profile);
  const std::optional<Profiles> profiles = options.profile.profiles(options.no_times);
  const bool collective = std::any_of(options.what.begin(), options.what.end(), names_collective);
  if (options.run.ranks == 0 && collective && config.backend.value == "cuda") {
    options.run.ranks = uint32_t(find_rank_gpus().names.size());
  }
  const std::vector<uint32_t> limits = limits_of(options, config);
  if (!options.max_blocks.empty()) {
    config.max_blocks = limits.empty() ? 0 : limits.back();
    config.max_blocks.from = "--max-blocks";
  }
  std::vector<NamedPlan> plans =
      find_plans(options.what, options.common, options.run.ranks, options.run.allow);
  if (!limits.empty()) keep_within(plans, limits.back());
  const uint32_t ranks = plans.front().plan.ranks();
  const RankGpus gpus = options.run.gpus(config, ranks);
  BenchRequest request = request_of(options, config, plans, tuned_for(config, gpus, ranks));
  if (profiles) request.profiles = &*profiles;
  quieten_nccl();
  const BenchReports reports(request);
  Launch launch;
  launch.ranks = request.ranks;
  launch.processes = request.processes;
  LiveResults live(request, reports, machine_facts(gpus, options.commit), files_of(options),
                   !options.no_times);
  launch.watch = [&live] { live.look(); };
  run_peer_programs(request, reports);
  std::string error;
  try {
    error = run_ranks(launch, config, [&](World& world) { bench_rank(world, request, config, reports); });
  } catch (const Failure&) {  // the user interrupted the run
    if (options.output.empty()) write_output("-", formatted(options, live.end(false)));
    throw;
  }
  const BenchResults& results = live.end(error.empty());
  if (options.output.empty()) write_output("-", formatted(options, results));
  if (profiles) std::cerr << profiles->text() << std::flush;
  if (!error.empty()) throw Failure(Exit::run_failed, error);
  bool any = false;
  const Result* failed = nullptr;
  for (const Result& result : results.all) {
    const Subject& of = results.subject(result);
    any = any || (result.finished && of.is_plan());
    if (!failed && result.failed && of.is_plan()) failed = &result;
    if (!of.is_plan() || result.what.empty()) continue;
    throw Failure(Exit::run_failed, "wrong result of " + of.name + ", " +
                                        format_bytes(request.sizes[result.size]) + " bytes: " + result.what);
  }
  if (!any) throw Failure(Exit::run_failed, "nothing could be timed");
  // After wrong results no table is written, because others rely on it.
  if (!options.tuned_out.empty()) {
    TunedFor machine = tuned_for(config, gpus, request.ranks);
    machine.rank_order = options.rank_order;
    write_output(options.tuned_out, tuned(results, machine));
  }
  if (failed) {
    throw Failure(Exit::run_failed, "plan '" + results.subject(*failed).name + "' failed at " +
                                        format_bytes(request.sizes[failed->size]) + ", see above");
  }
  return Exit::well;
}

}  // namespace

Action command::bench(CLI::App& app) {
  auto options = std::make_shared<BenchArguments>();
  suggest(app.add_option("what", options->what,
                         "Plan files, algorithms as for run, or a collective: all its shipped plans")
              ->required(),
          names_to_time);
  app.add_option("--bytes", options->bytes,
                 "Sizes of the message, as for run; default 1K:1G on cuda, 1K:1M:4 on cpu")
      ->type_name("SIZES");
  declare_set_and_name(app, options->common);
  options->run.declare(app);
  app.get_option("--ranks")->description(
      "Number of ranks; default: the plan's, or for a collective on cuda the number of GPUs");
  app.add_flag("--eager", options->eager, "Time launches; default: launches and graphs");
  app.add_flag("--graph", options->graph, "Time CUDA graphs; default: launches and graphs");
  app.add_option("--calls", options->calls, "Calls in one graph, or in a row; default 50")
      ->transform(whole_number(1, 10000))
      ->type_name("N");
  app.add_option("--warmup", options->warmup, "Calls before the timed ones; default 5")
      ->transform(whole_number(1, 10000))
      ->type_name("N");
  app.add_option(
         "--max-blocks", options->max_blocks,
         "Of a collective's plans, time only those with at most so many thread blocks, beside NCCL with "
         "at most so many; several limits, as 8,16,24, also make a table by limit; default: the "
         "configuration's, 0: any number")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->transform(whole_number(0, 4096))
      ->type_name("N,...");
  app.add_flag("--no-nccl", options->no_nccl, "Do not time NCCL beside the plans");
  app.add_option("--peer", options->peers,
                 "Also show the times of NAME, which the program COMMAND measures; may be repeated")
      ->type_name("NAME=COMMAND");
  app.add_flag("--all", options->all, "Print a row for every plan, not only for the fastest of each size");
  app.add_flag("--rank-order", options->rank_order, "Time only plans that add in the order of the ranks");
  app.add_flag("--no-times", options->no_times, "Leave the times out: the output is the same every time");
  app.add_option("--format", options->format, "Form of the output; default text")
      ->check(one_of("format", {"text", "csv", "json"}))
      ->type_name("NAME");
  app.add_option(
         "-o,--output", options->output,
         "Write the output to FILE, which is complete after every result, so that you may interrupt a run")
      ->type_name("FILE");
  app.add_option("--markdown", options->markdown, "Write a page with machine, versions and tables")
      ->type_name("FILE");
  app.add_option("--tuned", options->tuned,
                 "Time only the plans that this table chooses; for collectives, see tune")
      ->type_name("FILE");
  app.add_option("--tuned-out", options->tuned_out,
                 "Write the fastest plan of each size to a table from which run and bench choose")
      ->type_name("FILE");
  app.add_option("--trace", options->trace,
                 "Write when each operation of the last launch ran, for Perfetto; one plan only")
      ->type_name("FILE");
  options->profile.declare(
      app, "Print where the time of the last launch went, by line of the plan's author; one plan only");
  app.add_option("--commit", options->commit,
                 "Name of this build in the output; default: git describe at the time of the build")
      ->type_name("TEXT");
  declare_quiet(app);
  app.footer(
      "Times are medians of five means, on the slowest rank; algbw and busbw are GB/s as nccl-tests define "
      "them. Results\n"
      "are compared with the expected ones before and after. NCCL runs in its default mode, with symmetric "
      "windows, and\n"
      "with its zero-CTA policy; ratio is the fastest peer's time divided by ours.");
  return [options] { return bench_it(*options); };
}

}  // namespace chorale::tools
