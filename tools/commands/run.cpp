// chorale run: a plan on this machine, every result compared.

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>

#include "chorale/compile.hpp"
#include "chorale/did_you_mean.hpp"
#include "tools/programs.hpp"
#include "tools/run_options.hpp"
#include "tools/runner.hpp"

namespace chorale::tools {
namespace {

struct Options {
  Wanted wanted;
  std::string bytes = "1M", dtype = "f32", op, backend = "cpu", packet, timeout, seed;
  uint32_t ranks = 0, workers = 0;
  unsigned repeat = 0, warmup = 5;
  bool processes = false, in_place = false, out_of_place = false, bench = false, no_times = false;
};

template <class Value, size_t Count>
std::vector<std::string> names_of(const Value (&values)[Count], const char* (*name)(Value)) {
  std::vector<std::string> names;
  for (const Value value : values) names.push_back(name(value));
  return names;
}

template <class Value, size_t Count>
Value by_name(const Value (&values)[Count], const char* (*name)(Value), const std::string& word) {
  for (const Value value : values) {
    if (word == name(value)) return value;
  }
  throw Failure(Exit::command_wrong,
                "unknown name '" + word + "'");  // the option's check has refused it before
}

/// The plan to run: compiled from a program, or read and checked.
Plan plan_of(const Options& options) {
  const Wanted& wanted = options.wanted;
  Built built;
  if (names_program(wanted.what)) {
    dsl::Parameters::Settings settings = parse_settings(wanted.set);
    const std::string name = load_program(wanted);
    if (options.ranks && !settings.contains("ranks")) {
      const std::vector<dsl::Parameter> declared = dsl::describe(name).parameters;
      const bool takes_ranks =
          std::any_of(declared.begin(), declared.end(),
                      [](const dsl::Parameter& parameter) { return parameter.name == "ranks"; });
      if (takes_ranks) settings["ranks"] = std::to_string(options.ranks);
    }
    built = build_program(name, settings);
  } else {
    if (!wanted.set.empty() || !wanted.name.empty()) {
      throw Failure(Exit::command_wrong, "--set and --name are for programs; " + wanted.what + " is a plan",
                    "a plan's parameters were settled when it was compiled");
    }
    built.plan = load_plan(wanted.what);
    built.diagnostics = chorale::check(built.plan);
  }
  if (report(built.plan, built.diagnostics))
    throw Failure(Exit::plan_wrong, "a plan with findings is not run");
  if (options.ranks && options.ranks != built.plan.ranks()) {
    throw Failure(Exit::command_wrong,
                  "plan '" + built.plan.name + "' is for " + count(built.plan.ranks(), "rank") +
                      ", but --ranks is " + std::to_string(options.ranks),
                  "compile it for " + count(options.ranks, "rank") + ", or leave --ranks out");
  }
  return std::move(built.plan);
}

Config config_of(const Options& options) {
  Config config = Config::load();
  if (!options.timeout.empty()) config.timeout = parse_duration(options.timeout);
  if (options.workers) config.workers = options.workers;
  if (!options.seed.empty()) {
    if (options.processes) {
      throw Failure(Exit::command_wrong,
                    "--seed needs all ranks in one process; --processes makes one a rank");
    }
    if (options.seed.find_first_not_of("0123456789") != std::string::npos || options.seed.size() > 19) {
      throw Failure(Exit::command_wrong, "--seed is '" + options.seed + "', but must be a whole number");
    }
    config.seed = std::optional<uint64_t>(std::stoull(options.seed));
  }
  return config;
}

RunRequest request_of(const Options& options, const Plan& plan) {
  RunRequest request;
  request.sizes = parse_sizes(options.bytes);
  request.dtype = by_name(all_dtypes, &dtype_name, options.dtype);
  request.override_op = !options.op.empty();
  request.op =
      request.override_op ? by_name(all_reduce_ops, &reduce_op_name, options.op) : reduce_op_of(plan);
  if (!options.packet.empty()) request.packet = options.packet == "ll8" ? PacketForm::ll8 : PacketForm::ll16;
  request.in_place = options.in_place || (plan.inplace && !options.out_of_place);
  if (options.in_place && !plan.inplace) {
    throw Failure(Exit::command_wrong, "plan '" + plan.name + "' is not in place",
                  "compile it with an in-place collective, or leave --in-place out");
  }
  request.processes = options.processes;
  request.bench = options.bench;
  request.warmup = options.bench ? options.warmup : 0;
  request.repeat = options.repeat ? options.repeat : options.bench ? 20 : 3;
  return request;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// One row a size that every rank has finished.
void print_table(const Plan& plan, const RunRequest& request, const RunOutcome& outcome, bool times,
                 bool checked) {
  const bool reduces =
      plan.collective == "allreduce" || plan.collective == "reducescatter" || request.override_op;
  const char* op = reduces ? reduce_op_name(request.op) : "-";
  std::printf("%12s  %-8s  %-4s", "bytes", "dtype", "op");
  if (times) std::printf("  %11s  %11s  %9s  %9s", "median us", "min us", "algbw", "busbw");
  std::printf("  exact\n");
  for (size_t which = 0; which < outcome.sizes.size(); ++which) {
    const SizeResult& result = outcome.sizes[which];
    if (!result.finished) continue;
    const uint64_t bytes = request.sizes[which];
    std::printf("%12llu  %-8s  %-4s", static_cast<unsigned long long>(bytes), dtype_name(request.dtype), op);
    if (times) {
      const double middle = median(result.times_us);
      const double least = *std::min_element(result.times_us.begin(), result.times_us.end());
      const double bandwidth = middle > 0 ? double(bytes) / middle / 1e3 : 0;  // GB/s
      std::printf("  %11.2f  %11.2f  %9.3f  %9.3f", middle, least, bandwidth, bandwidth * bus_factor(plan));
    }
    std::printf("  %s\n", result.wrong ? "NO" : checked ? "yes" : "unknown");
  }
  std::fflush(stdout);
}

Exit run_it(const Options& options) {
  const Config config = config_of(options);
  const Plan plan = plan_of(options);
  const RunRequest request = request_of(options, plan);
  const bool checked = Oracle(plan, {request.dtype, request.op, 0, 0, 0}).knows_result();
  const RunOutcome outcome = run_plan(plan, request, config);
  std::cout << plan.name << ": " << plan.collective << " of " << count(plan.ranks(), "rank") << " as "
            << (request.processes   ? "processes"
                : config.seed.value ? "fibers"
                                    : "threads")
            << (request.in_place ? ", in place" : ", out of place") << ", cpu\n"
            << std::flush;
  const bool any =
      std::any_of(outcome.sizes.begin(), outcome.sizes.end(), [](auto& size) { return size.finished; });
  if (any) print_table(plan, request, outcome, !options.no_times, checked);
  if (!checked) std::cerr << "note: a '" << plan.collective << "' plan does not say what its result is\n";
  for (size_t which = 0; which < outcome.sizes.size(); ++which) {
    if (const auto& wrong = outcome.sizes[which].wrong) {
      throw Failure(Exit::run_failed,
                    "wrong result, " + format_bytes(request.sizes[which]) + " bytes: " + *wrong);
    }
  }
  if (!outcome.error.empty()) throw Failure(Exit::run_failed, outcome.error);
  return Exit::well;
}

}  // namespace

Action declare_run(CLI::App& app, bool bench) {
  auto options = std::make_shared<Options>();
  options->bench = bench;
  declare_wanted(app, options->wanted,
                 "A plan file or -, a C++ source (*.cpp), a plugin (*.so) or a shipped name");
  app.add_option("--ranks", options->ranks, "Number of ranks; default: the plan's")
      ->check(CLI::Range(1u, 4096u).description("1 to 4096"))
      ->type_name("N");
  app.add_option("--bytes", options->bytes,
                 "Sizes of the message: 4K,1M or 1K:1M (doubling) or 1K:1M:4; default 1M")
      ->type_name("SIZES");
  app.add_option("--dtype", options->dtype, "Type of an element; default f32")
      ->check(one_of("dtype", names_of(all_dtypes, &dtype_name)))
      ->type_name("NAME");
  app.add_option("--op", options->op, "Reduction operator; default: the plan's")
      ->check(one_of("op", names_of(all_reduce_ops, &reduce_op_name)))
      ->type_name("NAME");
  app.add_option("--backend", options->backend, "Where to run; default cpu")
      ->check(one_of("backend", {"cpu"}))
      ->type_name("NAME");
  app.add_option("--packet", options->packet, "Form of packets; default: the configuration's")
      ->check(one_of("packet form", {"ll8", "ll16"}))
      ->type_name("NAME");
  app.add_option("--seed", options->seed, "Run everything on one thread, in an order drawn from this number")
      ->type_name("N");
  app.add_option("--timeout", options->timeout, "Of every wait: 30s, 500ms, off")->type_name("TIME");
  app.add_option("--workers", options->workers, "Threads that run thread blocks; default: one a core")
      ->type_name("N");
  app.add_option("--repeat", options->repeat, "Timed runs of each size; default 3, with --bench 20")
      ->check(CLI::Range(1u, 1000000u).description("1 to 1000000"))
      ->type_name("N");
  app.add_flag("--processes", options->processes, "A process a rank, instead of a thread");
  CLI::Option* in_place = app.add_flag("--in-place", options->in_place, "Input and output are one buffer");
  app.add_flag("--out-of-place", options->out_of_place, "Input and output are two buffers")
      ->excludes(in_place);
  app.add_flag("--no-times", options->no_times,
               "Leave the times out, so that the output is the same every time");
  if (!bench) {
    app.add_flag("--bench", options->bench,
                 "Warm up, and time runs without new data; checked before and after");
  }
  app.add_option("--warmup", options->warmup, "Runs before the timed ones, with --bench; default 5")
      ->type_name("N");
  app.footer("Times are the slowest rank's; algbw and busbw are GB/s as nccl-tests define them.");
  return [options] { return run_it(*options); };
}

Action command::run(CLI::App& app) { return declare_run(app, false); }

}  // namespace chorale::tools
