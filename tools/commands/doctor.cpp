// chorale doctor reports what works on this machine, and how to fix the rest.

#include <CLI/CLI.hpp>
#include <memory>

#include "chorale/compile.hpp"
#include "chorale/config.hpp"
#include "chorale/other_names.hpp"
#include "tools/command.hpp"
#include "tools/doctor/examination.hpp"
#include "tools/doctor/topology.hpp"
#include "tools/findings.hpp"
#include "tools/programs.hpp"
#include "tools/schedule_options.hpp"

namespace chorale::tools {
namespace {

struct DoctorArguments {
  std::string plan, bytes = "1M", dtype = "f32", backend, only, format = "text";
  uint32_t ranks = 0;
  bool topology = false;
  ScheduleOptions schedule;
};

const std::vector<std::string> parts = {"host", "versions", "settings", "gpus"};

void examine_machine(Examination& found, const std::string& only) {
  const auto wanted = [&](const char* part) { return only.empty() || only == part; };
  if (wanted("versions")) examine_versions(found);
  if (wanted("host")) examine_host(found);
  if (wanted("gpus")) examine_gpus(found, find_gpus());
  if (wanted("settings")) examine_settings(found);
}

}  // namespace

Action command::doctor(CLI::App& app) {
  auto options = std::make_shared<DoctorArguments>();
  CLI::Option* const plan = app.add_option(
      "plan", options->plan, "A plan file or -: check only whether this machine has what the plan needs");
  app.add_option("--bytes", options->bytes, "Size of the message that the plan is for; default 1M")
      ->needs(plan)
      ->type_name("SIZE");
  app.add_option("--dtype", options->dtype, "Type of an element; default f32")
      ->needs(plan)
      ->transform(dtype_word())
      ->type_name("NAME");
  app.add_option("--backend", options->backend, "Where the plan is to run; default: the configuration's, cpu")
      ->needs(plan)
      ->check(one_of("backend", {"cpu", "cuda"}))
      ->type_name("NAME");
  app.add_option("--ranks", options->ranks, "Host schedules: number of ranks; default: the most it is for")
      ->needs(plan)
      ->transform(whole_number(1, 4096))
      ->type_name("N");
  options->schedule.declare(app);
  app.add_option("--only", options->only, "Only this part of the machine")
      ->excludes(plan)
      ->check(one_of("part", parts))
      ->type_name("NAME");
  app.add_option("--format", options->format, "Form of the output; default text")
      ->check(one_of("format", {"text", "json"}))
      ->type_name("NAME");
  app.add_flag("--topology", options->topology,
               "Print how the GPUs here are connected, as JSON for simulate --topology")
      ->excludes(plan)
      ->excludes("--only")
      ->excludes("--format");
  return [options] {
    if (options->topology) {
      print_topology();
      return Exit::well;
    }
    Examination found(options->format == "json");
    if (options->plan.empty()) {
      if (options->schedule.given())
        throw Failure(Exit::command_wrong,
                      "--param, --plan and --mover are for a host schedule, which is named before them");
      examine_machine(found, options->only);
    } else {
      const uint64_t bytes = parse_bytes(options->bytes);
      const Plan plan = load_plan(options->plan);
      if (report(plan, check(plan))) return Exit::plan_wrong;
      const bool cpu = (options->backend.empty() ? Config::load().backend.value : options->backend) == "cpu";
      if (plan.extension.schedule) {
        const schedule::Concrete made = unroll(plan, schedule_ranks(*plan.extension.schedule, options->ranks),
                                               options->schedule.params(plan), options->schedule.automatic());
        const BlockPlans plans = launched_plans(plan, made, options->schedule.plan);
        if (cpu) {
          examine_schedule_on_cpu(found, plan, made);
        } else {
          examine_schedule(found, find_gpus(), plan, made, plans);
        }
      } else if (options->schedule.given() || options->ranks) {
        throw Failure(Exit::command_wrong, "--ranks, --param, --plan and --mover are for host schedules; '" +
                                               plan.name + "' is none");
      } else if (cpu) {
        examine_plan_on_cpu(found, plan, bytes, carrier_of(options->dtype));
      } else {
        examine_plan(found, find_gpus(), plan, bytes, carrier_of(options->dtype));
      }
    }
    found.end();
    return found.well() ? Exit::well : Exit::run_failed;
  };
}

}  // namespace chorale::tools
