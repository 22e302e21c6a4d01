#include "tools/run_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "chorale/compile.hpp"
#include "chorale/other_names.hpp"
#include "chorale/proof.hpp"
#include "tools/algorithms.hpp"
#include "tools/findings.hpp"
#include "tools/plans.hpp"
#include "tools/python.hpp"

namespace chorale::tools {

void RunOptions::declare(CLI::App& app) {
  app.add_option("--ranks", ranks,
                 "Number of ranks, which a program gets as --set ranks=N; default: the plan's")
      ->transform(whole_number(1, 4096))
      ->type_name("N");
  app.add_option("--dtype", dtype, "Type of an element; default f32")
      ->transform(dtype_word())
      ->type_name("NAME");
  app.add_option("--op", op, "Reduction operator; default: the plan's")
      ->transform(op_word())
      ->type_name("NAME");
  app.add_option("--backend", backend, "Where to run; default: the configuration's, cpu")
      ->check(one_of("backend", {"cpu", "cuda"}))
      ->type_name("NAME");
  app.add_option("--packet", packet, "Form of packets; default: the configuration's, auto")
      ->check(one_of("packet form", {std::begin(packet_form_names), std::end(packet_form_names)}))
      ->type_name("NAME");
  app.add_option("--timeout", timeout,
                 "Timeout of every wait: 30s, 500ms, off; default: the configuration's, 30s")
      ->type_name("TIME");
  app.add_option("--workers", workers,
                 "Threads that run thread blocks; default, and with 0: the configuration's, one per core")
      ->transform(whole_number(0, 4096))
      ->type_name("N");
  CLI::Option* const as_processes =
      app.add_flag("--processes", processes, "Run one process per rank: the default on cuda");
  app.add_flag("--threads", threads, "Run one thread per rank: the default on cpu")->excludes(as_processes);
  declare_allow(app, allow);
  app.add_flag("--share-gpus", share_gpus,
               "Let several ranks use one GPU if there are fewer GPUs than ranks");
}

void RunOptions::declare_max_blocks(CLI::App& app) {
  app.add_option("--max-blocks", max_blocks,
                 "Choose only plans with at most so many thread blocks, 0: any number; default: the "
                 "configuration's, 0")
      ->transform(whole_number(0, 4096))
      ->type_name("N");
}

Config RunOptions::config() const {
  Config config = Config::load();
  if (!timeout.empty()) config.timeout = parse_duration(timeout);
  if (workers) config.workers = workers;
  if (!backend.empty()) config.backend = backend;
  if (max_blocks) {
    config.max_blocks = *max_blocks;
    config.max_blocks.from = "--max-blocks";
  }
  return config;
}

DType RunOptions::type() const {
  try {
    return op.empty() ? carrier_of(dtype) : stands_for(dtype, op).dtype;
  } catch (const NoSuchReduction& none) {
    throw Failure(Exit::command_wrong, none.finding, none.help);
  }
}

std::optional<ReduceOp> RunOptions::reduce_op(bool any_reduces) const {
  if (op.empty()) {
    if (!any_reduces || !names_other_dtype(dtype)) return {};
    throw Failure(Exit::command_wrong, "--dtype " + dtype + " is reduced by some operators only",
                  "name one with --op");
  }
  if (!any_reduces) {
    throw Failure(Exit::command_wrong, "--op " + op + " names a reduction, but nothing is reduced here",
                  "leave --op out");
  }
  type();  // refuses types that do not exist
  return stands_for(dtype, op).op;
}

std::optional<PacketForm> RunOptions::packet_form() const { return packet_form_of(packet); }

bool RunOptions::as_processes(const Config& config) const {
  return processes || (!threads && config.backend.value == "cuda");
}

RankGpus RunOptions::gpus(const Config& config, uint32_t ranks) const {
  if (config.backend.value != "cuda") return {};
  RankGpus found = find_rank_gpus();
  need_gpus(found, ranks, share_gpus);
  return found;
}

std::vector<uint64_t> sizes_for(const std::string& asked, const std::string& otherwise, uint32_t ranks,
                                DType dtype) {
  if (!asked.empty()) return parse_sizes(asked);
  std::vector<uint64_t> sizes = parse_sizes(otherwise);
  const uint64_t unit = uint64_t(ranks) * dtype_size(dtype);
  for (uint64_t& size : sizes) size = std::max(size / unit, uint64_t(1)) * unit;
  return sizes;
}

namespace {

Built built_program(const Wanted& wanted, uint32_t ranks, const std::vector<std::string>& allow) {
  dsl::Parameters::Settings settings = parse_settings(wanted.set);
  const std::string name = load_program(wanted, collective_words());
  const bool open = ranks && !settings.contains("ranks");
  if (open && is_python(name)) {
    // Only the source itself knows its parameters, and it may be for so many ranks without one.
    Built built = build_program(name, settings, {.target = {}, .allow = allow});
    if (built.plan.ranks() == ranks) return built;
    settings["ranks"] = std::to_string(ranks);
  } else if (open && takes_parameter(name, "ranks")) {
    settings["ranks"] = std::to_string(ranks);
  }
  return build_program(name, settings, {.target = {}, .allow = allow});
}

/// Reads a file, and checks and proves the plan.
/// \param file  a plan's or an algorithm's file
Built built_file(const std::string& file, const std::vector<std::string>& allow) {
  if (names_algorithm(file)) return build_algorithm(file, {.target = {}, .allow = allow});
  Built built;
  built.plan = load_plan(file);
  // A plan whose certificate is valid need not be proved again.
  built.diagnostics = refute_certificate(built.plan).empty()
                          ? chorale::check(built.plan)
                          : check_plan(built.plan, {.target = {}, .allow = allow});
  return built;
}

/// Says how to get a plan of the number of ranks that the command line names.
std::string ranks_remedy(const Wanted& wanted, uint32_t ranks) {
  const std::string otherwise = ", or leave --ranks out";
  if (!names_program(wanted.what)) return "compile it for " + count(ranks, "rank") + otherwise;
  if (parse_settings(wanted.set).contains("ranks"))
    return "try --set ranks=" + std::to_string(ranks) + otherwise;
  return "let the program take its number of ranks as the parameter ranks, which --ranks sets" + otherwise;
}

/// Throws if a plan is for another number of ranks than the command line. A host schedule is for any number.
void require_ranks(const Wanted& wanted, const Built& built, uint32_t ranks) {
  const Plan& plan = built.plan;
  if (!ranks || ranks == plan.ranks() || plan.extension.schedule || !built.diagnostics.empty()) return;
  throw Failure(Exit::command_wrong,
                "plan '" + plan.name + "' is for " + count(plan.ranks(), "rank") + ", but --ranks is " +
                    std::to_string(ranks),
                ranks_remedy(wanted, ranks));
}

Built built_of_any_ranks(const Wanted& wanted, uint32_t ranks, const std::vector<std::string>& allow) {
  const bool named = names_program(wanted.what);
  const std::string schedule = named ? shipped_schedule(wanted.what) : "";
  if (named && schedule.empty()) return built_program(wanted, ranks, allow);
  if (!wanted.set.empty() || !wanted.name.empty()) {
    throw Failure(
        Exit::command_wrong,
        "--set and --name are for programs; " + wanted.what + (named ? " is a host schedule" : " is a plan"),
        named ? "set its parameters with --param" : "a plan's parameters were fixed when it was compiled");
  }
  return built_file(named ? schedule : wanted.what, allow);
}

}  // namespace

Built built_for(const Wanted& wanted, uint32_t ranks, const std::vector<std::string>& allow) {
  Built built = built_of_any_ranks(wanted, ranks, allow);
  require_ranks(wanted, built, ranks);
  return built;
}

Plan plan_for(const Wanted& wanted, uint32_t ranks, const std::vector<std::string>& allow) {
  Built built = built_for(wanted, ranks, allow);
  if (report(built.plan, built.diagnostics)) {
    throw Failure(Exit::plan_wrong, "a plan with findings is not run", allowing(built.diagnostics, allow));
  }
  return std::move(built.plan);
}

void ProfileOptions::declare(CLI::App& app, const std::string& what) {
  CLI::Option* const wanted = app.add_flag("--profile", profile, what);
  app.add_option("--machine", machine,
                 "With --profile: print beside it the prediction for the machine of this file, see simulate")
      ->type_name("FILE")
      ->needs(wanted);
  declare_topology(app, topology, "With --profile: predict for GPUs that are connected so, see simulate")
      ->needs(wanted);
}

std::optional<Profiles> ProfileOptions::profiles(bool no_times) const {
  std::optional<Profiles> profiles;
  if (!profile) return profiles;
  if (no_times)
    throw Failure(Exit::command_wrong, "--profile prints times, and --no-times leaves them out",
                  "leave one out");
  std::optional<Machine> beside;
  if (machine || !topology.empty()) beside = machine_of(machine.value_or(""), topology);
  profiles.emplace(std::move(beside));
  return profiles;
}

}  // namespace chorale::tools
