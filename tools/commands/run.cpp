// chorale run runs a plan on this machine and compares every result with the expected one.

#include "tools/schedules/run.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>
#include <utility>

#include "chorale/collective.hpp"
#include "chorale/layout.hpp"
#include "chorale/reduction_order.hpp"
#include "chorale/shipped_name.hpp"
#include "tools/adversarial.hpp"
#include "tools/completion.hpp"
#include "tools/plans.hpp"
#include "tools/run_options.hpp"
#include "tools/runner.hpp"
#include "tools/schedule_options.hpp"
#include "tools/trace.hpp"
#include "tools/tuned.hpp"

namespace chorale::tools {
namespace {

struct RunArguments {
  Wanted wanted;
  RunOptions run;
  ScheduleOptions schedule;
  std::string bytes, seed, trace, tuned, limit;
  unsigned repeat = 3, in_a_row = 0;
  uint64_t schedules = 0;
  bool adversarial = false, in_place = false, out_of_place = false, rank_order = false, no_times = false;
  ProfileOptions profile;
};

uint64_t seed_of(const RunArguments& options) { return options.seed.empty() ? 0 : parse_seed(options.seed); }

Config config_of(const RunArguments& options) {
  Config config = options.run.config();
  trace_to(config, options.trace);
  profile_by(config, options.profile.profile);
  if (options.seed.empty()) return config;
  if (options.run.processes) {
    throw Failure(Exit::command_wrong,
                  "--seed needs all ranks in one process; --processes makes one process per rank");
  }
  if (config.backend.value != "cpu") {
    throw Failure(Exit::command_wrong,
                  "--seed sets the order of work on the CPU; a GPU chooses its own order",
                  "leave --seed out, or use --backend cpu");
  }
  config.seed = std::optional<uint64_t>(seed_of(options));
  return config;
}

bool in_place(const RunArguments& options, const Plan& plan) {
  if (options.in_place && !plan.inplace) {
    throw Failure(Exit::command_wrong, "plan '" + plan.name + "' is not in place",
                  "compile it with an in-place collective, or leave --in-place out");
  }
  return options.in_place || (plan.inplace && !options.out_of_place);
}

/// Cuts sizes that the plan cannot take down to the next smaller ones, as the default size is, and says so
/// once. Sizes that would become 0 stay, and are refused later.
std::vector<uint64_t> cut_sizes(std::vector<uint64_t> sizes, const Plan& plan, DType dtype) {
  const uint64_t parts = message_segments(plan), step = parts * dtype_size(dtype);
  bool told = false;
  for (uint64_t& size : sizes) {
    const uint64_t below = size / step * step;
    if (below == size || !below) continue;
    if (!std::exchange(told, true)) {
      std::cerr << "note: " << count(size, "byte") << " are cut to " << below << ", a multiple of "
                << count(parts, "part") << " of " << dtype_name(dtype) << '\n';
    }
    size = below;
  }
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

RunRequest request_of(const RunArguments& options, const Config& config, const Plan& plan) {
  RunRequest request;
  request.dtype = options.run.type();
  request.sizes = cut_sizes(sizes_for(options.bytes, "1M", plan.ranks(), request.dtype), plan, request.dtype);
  const std::optional<ReduceOp> op = options.run.reduce_op(reduces(plan));
  request.override_op = op.has_value();
  request.op = op ? *op : reduce_op_of(plan);
  request.packet = options.run.packet_form();
  request.in_place = in_place(options, plan);
  request.processes = options.run.as_processes(config);
  request.repeat = options.repeat;
  request.in_a_row = options.in_a_row;
  request.trace = options.trace;
  return request;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// Prints a row for each size that all ranks have finished.
void print_table(const Plan& plan, const RunRequest& request, const RunOutcome& outcome, bool times,
                 bool checked) {
  // A custom plan may have several operators, so the row names an operator only if it replaces all of them.
  const bool has_operator = collective_reduces(plan.collective) || request.override_op;
  const char* op = has_operator ? reduce_op_name(request.op) : "-";
  std::printf("%12s  %-8s  %-4s", "bytes", "dtype", "op");
  if (times) std::printf("  %11s  %11s  %10s  %10s", "median us", "min us", "algbw GB/s", "busbw GB/s");
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
      std::printf("  %11.2f  %11.2f  %10.3f  %10.3f", middle, least, bandwidth,
                  bandwidth * bus_factor(plan.collective, plan.ranks()));
    }
    const char* const right = plan.extension.codecs.empty() ? "yes" : "in bound";
    std::printf("  %s\n", result.wrong ? "NO" : checked ? right : "unknown");
  }
  std::fflush(stdout);
}

Exit run_schedules(const RunArguments& options) {
  if (options.run.processes || options.run.workers || !options.run.backend.empty() ||
      !options.run.op.empty() || !options.trace.empty() || options.profile.profile || options.in_a_row) {
    throw Failure(Exit::command_wrong,
                  "--adversarial runs on a simulated machine: it takes no --processes, --workers, --backend, "
                  "--op, --trace, --profile or --in-a-row");
  }
  const Plan plan = plan_for(options.wanted, options.run.ranks, options.run.allow);
  refuse_schedule(plan, "--adversarial", "--seed draws an order of its streams");
  options.run.reduce_op(reduces(plan));  // refuses a type that the plan's operator does not reduce
  AdversarialRequest request;
  request.dtype = options.run.type();
  if (!options.bytes.empty()) request.sizes = cut_sizes(parse_sizes(options.bytes), plan, request.dtype);
  request.packet = options.run.packet_form().value_or(request.packet);
  request.in_place = in_place(options, plan);
  request.launches = options.repeat;
  request.seed = seed_of(options);
  if (options.schedules) request.schedules = options.schedules;
  // A user who gives the number of schedules wants all of them, without a time limit.
  request.limit = parse_duration(!options.limit.empty() ? options.limit
                                 : options.schedules    ? "off"
                                                        : "10min");
  return run_adversarial(plan, request);
}

/// Returns "threads", "processes" or "fibers".
const char* as_what(bool processes, const Config& config) {
  return processes ? "processes" : config.seed.value ? "fibers" : "threads";
}

ScheduleRequest schedule_request_of(const RunArguments& options, const Config& config, const Plan& plan) {
  const RunOptions& run = options.run;
  if (!options.bytes.empty() || run.dtype != "f32" || !run.op.empty() || !run.packet.empty() || run.workers ||
      !options.trace.empty() || options.profile.profile || options.in_a_row || options.in_place ||
      options.out_of_place) {
    throw Failure(
        Exit::command_wrong,
        "'" + plan.name +
            "' is a host schedule, whose tensors have sizes and types of their own: it takes no "
            "--bytes, --dtype, --op, --packet, --workers, --trace, --profile, --in-a-row, --in-place or "
            "--out-of-place",
        "set its parameters with --param");
  }
  ScheduleRequest request;
  request.ranks = schedule_ranks(*plan.extension.schedule, run.ranks);
  request.params = options.schedule.params(plan);
  request.plans = options.schedule.plan;
  request.allow = run.allow;
  request.mover = options.schedule.automatic();
  request.processes = run.as_processes(config);
  request.repeat = options.repeat;
  return request;
}

void run_host(const RunArguments& options, const Config& config, const Plan& plan) {
  const ScheduleRequest request = schedule_request_of(options, config, plan);
  options.run.gpus(config, request.ranks);
  const RunOutcome outcome = run_schedule(plan, request, config);
  const SizeResult& result = outcome.sizes[0];
  std::cout << plan.name << ": host schedule of " << count(request.ranks, "rank") << " as "
            << as_what(request.processes, config) << ", " << schedule::mover_names[size_t(request.mover)]
            << ", " << config.backend.value << "\n";
  if (result.finished) {
    std::cout << count(request.repeat, "run") << ", exact: " << (result.wrong ? "NO" : "yes");
    if (!options.no_times) {
      std::cout << fmt::format(", median {:.2f} us, min {:.2f} us", median(result.times_us),
                               *std::min_element(result.times_us.begin(), result.times_us.end()));
    }
    std::cout << "\n";
  }
  std::cout << std::flush;
  if (result.wrong) throw Failure(Exit::run_failed, "wrong result, " + *result.wrong);
  if (!outcome.error.empty()) throw Failure(Exit::run_failed, outcome.error);
}

void run_one(const RunArguments& options, const Config& config) {
  const std::optional<Profiles> profiles = options.profile.profiles(options.no_times);
  const Plan plan = plan_for(options.wanted, options.run.ranks, options.run.allow);
  if (plan.extension.schedule) return run_host(options, config, plan);
  if (options.schedule.given()) {
    throw Failure(Exit::command_wrong,
                  "--param, --plan and --mover are for host schedules; '" + plan.name + "' has none");
  }
  RunRequest request = request_of(options, config, plan);
  if (profiles) request.profiles = &*profiles;
  const bool checked = Oracle(plan, {request.dtype, request.op, 0, 0, 0}).knows_result();
  options.run.gpus(config, plan.ranks());
  const RunOutcome outcome = run_plan(plan, request, config);
  std::cout << plan.name << ": " << plan.collective << " of " << count(plan.ranks(), "rank") << " as "
            << as_what(request.processes, config) << (request.in_place ? ", in place" : ", out of place")
            << ", " << config.backend.value
            << (request.in_a_row ? ", " + count(request.in_a_row, "time") + " in a row" : "") << "\n"
            << std::flush;
  const bool any =
      std::any_of(outcome.sizes.begin(), outcome.sizes.end(), [](auto& size) { return size.finished; });
  if (any) print_table(plan, request, outcome, !options.no_times && !request.in_a_row, checked);
  if (profiles) std::cerr << profiles->text() << std::flush;
  if (!checked) std::cerr << "note: " << unknown_result(plan) << '\n';
  for (size_t which = 0; which < outcome.sizes.size(); ++which) {
    if (const auto& wrong = outcome.sizes[which].wrong) {
      throw Failure(Exit::run_failed,
                    "wrong result, " + format_bytes(request.sizes[which]) + " bytes: " + *wrong);
    }
  }
  if (!outcome.error.empty()) throw Failure(Exit::run_failed, outcome.error);
}

std::string why_chosen(const TunedPlans::Choice& choice, DType dtype) {
  if (choice.found == TuneTable::Found::none) {
    const std::string within =
        choice.max_blocks != 0 ? " within " + count(choice.max_blocks, "thread block") : "";
    return ", the default" + within + ": nothing is tuned for it";
  }
  return choice.dtype == dtype ? "" : ", as tuned for " + std::string(dtype_name(choice.dtype));
}

/// Groups consecutive sizes for which the same plan is chosen.
struct Share {
  TunedPlans::Choice choice;
  std::string bytes;  ///< the sizes, as --bytes takes them
};

bool is_default(const Share& share) { return share.choice.found == TuneTable::Found::none; }

std::vector<Share> shares_of(const RunArguments& options, const TunedPlans& plans) {
  std::vector<Share> shares;
  for (const uint64_t size : sizes_for(options.bytes, "1M", options.run.ranks, options.run.type())) {
    const TunedPlans::Choice choice = plans.choose(options.wanted.what, size, options.run.type());
    if (shares.empty() || words_of(shares.back().choice) != words_of(choice)) shares.push_back({choice, ""});
    shares.back().bytes += (shares.back().bytes.empty() ? "" : ",") + std::to_string(size);
  }
  return shares;
}

/// Returns the plan's file, or the program and its settings if no file is shipped for this number of ranks.
Wanted wanted_of(const TunedPlans::Choice& choice, uint32_t ranks) {
  Wanted wanted;
  wanted.what = choice.file;
  std::error_code no_file;
  if (std::filesystem::exists(choice.file, no_file)) return wanted;
  ShippedName shipped = shipped_name(choice.name, int(ranks));
  wanted.what = shipped.program;
  shipped.settings.erase("ranks");  // the number of ranks has an option of its own
  for (const auto& [key, value] : shipped.settings) wanted.set.push_back(key + "=" + value);
  return wanted;
}

/// Refuses multicast for a plan that must add up in the order of the ranks.
void require_rank_order(const Plan& plan, const Config& config) {
  if (config.switch_channels.value != "multicast" || !combines_on_switch(plan)) return;
  throw Failure(Exit::command_wrong,
                "'" + plan.name + "' adds up on a switch channel, and with switch_channels = multicast (" +
                    config.switch_channels.from + ") a switch does so in an order of its own",
                "--rank-order needs switch_channels = peer");
}

/// Runs a collective. All sizes of one share run in one go.
void run_chosen(const RunArguments& options, const Config& config) {
  if (options.run.ranks == 0) {
    throw Failure(Exit::command_wrong,
                  "'" + options.wanted.what + "' stands for plans for one number of ranks",
                  "say how many with --ranks");
  }
  TunedFor machine = tuned_for(config, options.run.gpus(config, options.run.ranks), options.run.ranks);
  machine.rank_order = options.rank_order;
  const std::string advice = tune_command({options.wanted.what}, machine, options.run.type(), options.tuned);
  TunedPlans plans = tuned_plans(options.tuned, machine, advice);
  const std::vector<Share> shares = shares_of(options, plans);
  if (!options.trace.empty() && shares.size() > 1) {
    throw Failure(Exit::command_wrong,
                  "--trace covers one plan, but '" + words_of(shares[0].choice) + "' is chosen for " +
                      format_bytes(parse_sizes(shares[0].bytes).back()) + " bytes and '" +
                      words_of(shares[1].choice) + "' for " +
                      format_bytes(parse_sizes(shares[1].bytes).front()),
                  "name sizes of one plan with --bytes, or the plan");
  }
  if (std::any_of(shares.begin(), shares.end(), is_default))
    std::cerr << "note: this finds the fastest plans here: " << advice << "\n";
  for (const auto& [choice, bytes] : shares) {
    // Plans that do not add up in rank order are refused.
    if (options.rank_order) require_rank_order(plans.plan(choice), config);
    std::cerr << "chosen: " << words_of(choice) << why_chosen(choice, options.run.type()) << "\n";
    RunArguments one = options;
    one.bytes = bytes;
    one.wanted = wanted_of(choice, options.run.ranks);
    if (choice.packet && one.run.packet.empty()) one.run.packet = packet_form_names[size_t(*choice.packet)];
    run_one(one, config);
  }
}

Exit run_it(const RunArguments& options) {
  keep_apart({{"", options.wanted.what},
              {"--tuned", options.tuned},
              {"--machine", options.profile.machine.value_or("")}},
             {{"--trace", options.trace}});
  const bool collective = names_collective(options.wanted.what);
  if (!options.tuned.empty() && !collective) {
    throw Failure(Exit::command_wrong, "--tuned chooses a plan, and '" + options.wanted.what + "' is one",
                  "name a collective: " + join(collective_words()));
  }
  if (options.rank_order && !collective) {
    throw Failure(Exit::command_wrong,
                  "--rank-order chooses a plan, and '" + options.wanted.what + "' is one",
                  "chorale check PLAN --certify FILE says in which order it adds up");
  }
  if (options.adversarial && collective) {
    throw Failure(Exit::command_wrong,
                  "--adversarial runs one plan, and '" + options.wanted.what + "' stands for several",
                  "name one: chorale list has them");
  }
  if (options.adversarial) return run_schedules(options);
  const Config config = config_of(options);
  collective ? run_chosen(options, config) : run_one(options, config);
  return Exit::well;
}

}  // namespace

Action command::run(CLI::App& app) {
  auto options = std::make_shared<RunArguments>();
  declare_wanted(
      app, options->wanted,
      "A plan file or -, a source in C++ (*.cpp) or Python (*.py), a plugin (*.so), a shipped name, or a "
      "collective: the fastest shipped plan of each size");
  suggest(app.get_option("what"), names_to_run);
  app.add_option("--bytes", options->bytes,
                 "Sizes of the message: 4K,1M or 1K:1M (doubling) or 1K:1M:4; default 1M, or with "
                 "--adversarial the smallest size that shows any order")
      ->type_name("SIZES");
  options->run.declare(app);
  options->run.declare_max_blocks(app);
  app.add_option("--seed", options->seed,
                 "Run everything on one thread, in an order drawn from this number; default: the "
                 "configuration's, off; with --adversarial 0")
      ->type_name("N");
  CLI::Option* adversarial =
      app.add_flag("--adversarial", options->adversarial,
                   "Run the worst schedules that the memory model allows, on the adversarial machine");
  app.add_option("--schedules", options->schedules,
                 "Number of schedules, drawn from --seed and the numbers after it; default 1000")
      ->transform(whole_number(1, uint64_t(1) << 40, "1 to 2^40"))
      ->type_name("N")
      ->needs(adversarial);
  app.add_option("--limit", options->limit,
                 "Time limit for the schedules of each size; default 10min, and off with --schedules")
      ->type_name("TIME")
      ->needs(adversarial);
  app.add_option("--repeat", options->repeat, "Runs of each size, with new data each; default 3")
      ->transform(whole_number(1, 1000000))
      ->type_name("N");
  app.add_option("--in-a-row", options->in_a_row,
                 "Make N launches in each run instead of one, each with new data and without waiting in "
                 "between. Each rank draws which are eager and, on GPUs, which are in CUDA graphs. No times")
      ->transform(whole_number(1, 100000))
      ->type_name("N");
  CLI::Option* in_place = app.add_flag("--in-place", options->in_place, "Input and output are one buffer");
  app.add_flag("--out-of-place", options->out_of_place, "Input and output are two buffers")
      ->excludes(in_place);
  options->schedule.declare(app);
  app.add_option("--trace", options->trace,
                 "Write when each operation of the last run ran, even if the run fails, for Perfetto")
      ->type_name("FILE");
  options->profile.declare(app, "Print where the time of the last run went, by line of the plan's author");
  app.add_option("--tuned", options->tuned,
                 "The table that chooses the plans of a collective; default plans/tuned/<device>.json")
      ->type_name("FILE");
  app.add_flag("--rank-order", options->rank_order,
               "For a collective, use only plans that add in the order of the ranks");
  app.add_flag("--no-times", options->no_times,
               "Leave the times out, so that the output is the same every time");
  declare_quiet(app);
  app.footer("Times are the slowest rank's; algbw and busbw are GB/s as nccl-tests define them.");
  return [options] { return run_it(*options); };
}

}  // namespace chorale::tools
