// chorale view writes a page that shows plans, schedules and traces.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <set>

#include "chorale/config.hpp"
#include "chorale/other_names.hpp"
#include "chorale/read_file.hpp"
#include "chorale/simulate.hpp"
#include "chorale/usage_error.hpp"
#include "tools/findings.hpp"
#include "tools/plans.hpp"
#include "tools/run_options.hpp"
#include "tools/schedule_options.hpp"
#include "tools/schedules/launched.hpp"
#include "tools/view/page.hpp"
#include "tools/view/plan_picture.hpp"
#include "tools/view/schedule_picture.hpp"
#include "tools/view/trace_picture.hpp"

namespace chorale::tools {
namespace {

/// A page has room for this many plans.
constexpr size_t most_pictures = 2;

struct ViewArguments {
  std::vector<std::string> what, trace, allow, time;
  Wanted common;  ///< --set and --name
  ScheduleOptions schedule;
  std::string output, machine, topology, bytes, dtype = "f32", packet;
  uint32_t ranks = 0;
  bool eager = false, open = false;
};

/// Reads a file of which it is not known what it holds; empty if it is not a file, but a name.
std::string text_of(const std::string& path) {
  if (path == "-" || names_program(path)) return "";
  try {
    return read_file(path);
  } catch (const std::runtime_error&) {
    return "";  // the reader of plans says why it cannot be read
  }
}

std::string trace_text(const std::string& path) {
  try {
    return read_file(path);
  } catch (const std::runtime_error& error) {
    throw Failure(Exit::command_wrong, error.what());
  }
}

/// Reads the words of --time, and returns nanoseconds by the name of a function or of a launched plan.
/// \throws Failure for names that the schedule does not use
std::map<std::string, double> times_of(const std::vector<std::string>& words,
                                       const schedule::Concrete& made) {
  std::set<std::string> names;
  for (const auto& steps : made.steps) {
    for (const schedule::Step& step : steps)
      if (step.kind == schedule::StepKind::call || step.kind == schedule::StepKind::launch)
        names.insert(step.name);
  }
  std::map<std::string, double> times;
  for (const auto& [name, text] : parse_settings(words, "--time")) {
    if (!names.contains(name)) {
      const std::vector<std::string> known(names.begin(), names.end());
      throw Failure(Exit::command_wrong, unknown("function or launched plan", name, known),
                    "the schedule has " + (known.empty() ? "neither" : join(known)));
    }
    times[name] = double(parse_duration(text).count());
    if (times[name] == 0)
      throw Failure(Exit::command_wrong, "--time takes a time above 0, such as " + name + "=20us");
  }
  return times;
}

Picture picture_of_concrete(const ViewArguments& options, const Built& built, const schedule::Concrete& made,
                            const std::string& what, const std::vector<Explained>& findings,
                            const Machine& machine) {
  const std::map<std::string, double> given = times_of(options.time, made);
  const BlockPlans plans =
      launched_plans(built.plan, made, options.schedule.plan, options.allow, MissingPlans::leave_out);
  std::map<std::string, Simulator> simulators;
  const auto time_of = [&](const schedule::Step& step) {
    if (const auto found = given.find(step.name); found != given.end()) return found->second;
    const auto plan = step.kind == schedule::StepKind::launch ? plans.find(step.name) : plans.end();
    if (plan == plans.end()) return -1.0;
    Simulator& simulator = simulators.try_emplace(step.name, plan->second).first->second;
    const SimulatedCall call{.bytes = std::max(step.reads[0].bytes, step.writes[0].bytes),
                             .dtype = made.tensors[step.reads[0].tensor].dtype,
                             .packet = packet_form_of(options.packet)};
    try {
      const Simulation simulated = simulator.simulate(call, machine);
      return simulated.ns - simulated.launch_ns;
    } catch (const UsageError&) {
      return -1.0;  // a note of the page says that the time is not known
    }
  };
  Picture picture = picture_of_schedule(built.plan, expand_movers(made), what, findings,
                                        {&machine, options.eager, time_of});
  const schedule::Values params = options.schedule.params(built.plan);
  for (const schedule::Param& param : built.plan.extension.schedule->params) {
    const auto set = params.find(param.name);
    picture.facts.push_back(param.name + " = " +
                            std::to_string(set == params.end() ? param.value.value_or(0) : set->second));
  }
  for (const auto& [name, text] : parse_settings(options.time, "--time"))
    picture.facts.push_back("--time " + name + "=" + text);
  return picture;
}

Picture picture_of_file(const ViewArguments& options, const std::string& what, const std::string& trace,
                        const Machine& machine) {
  if (const std::string text = text_of(what); is_trace(text)) {
    if (!trace.empty())
      throw Failure(Exit::command_wrong, "--trace belongs to a plan, but " + what + " is a trace itself");
    return picture_of_trace(text, what);
  }
  Wanted wanted = options.common;
  wanted.what = what;
  Progress progress;
  progress("checking " + what);
  const Built built = built_for(wanted, options.ranks, options.allow);
  const Plan& plan = built.plan;
  std::vector<Explained> findings = explain_all(plan, built.diagnostics);
  // A schedule with findings cannot be unrolled. Its page shows the findings only.
  if (plan.extension.schedule && findings.empty() && (plan.gpus.empty() || options.schedule.given())) {
    if (!trace.empty())
      throw Failure(Exit::command_wrong,
                    "--trace is for plans of thread blocks, and '" + plan.name + "' is a host schedule");
    if (!machine.topology.nodes.empty())
      throw Failure(Exit::command_wrong,
                    "a topology is for plans of thread blocks, and '" + plan.name + "' is a host schedule",
                    "leave --topology out, or take a machine without one");
    const schedule::Concrete made = unroll(plan, schedule_ranks(*plan.extension.schedule, options.ranks),
                                           options.schedule.params(plan), options.schedule.automatic());
    return picture_of_concrete(options, built, made, what, findings, machine);
  }
  if (!options.time.empty())
    throw Failure(Exit::command_wrong,
                  "--time is for host schedules without findings, and '" + plan.name + "' is none");
  PlanView view;
  view.file = what;
  view.dtype = carrier_of(options.dtype);
  view.bytes = sizes_for(options.bytes, "1M", std::max(plan.ranks(), 1u), view.dtype).front();
  view.packet = packet_form_of(options.packet);
  view.eager = options.eager;
  view.machine = &machine;
  view.trace_file = trace;
  view.findings = std::move(findings);
  progress("reading and predicting " + what);
  if (!trace.empty())
    view.measured = spans_of(plan, trace_text(trace), trace, view.bytes, &view.trace_backend);
  return picture_of(plan, view);
}

/// Opens the page in the user's browser.
void open_page(const std::string& path) {
#ifdef __APPLE__
  const std::string opener = "open ";
#else
  const std::string opener = "xdg-open ";
#endif
  if (std::system((opener + shell_line({&path, 1}) + " >/dev/null 2>&1").c_str()) != 0)
    std::cerr << "note: no browser could be started; open " << path << " in one\n";
}

/// Returns the file for the page if the user names none: page.html in this folder for a plan page.json.
std::string default_output(const std::string& what) {
  if (what == "-")
    throw Failure(Exit::command_wrong, "the plan on standard input has no name for the page",
                  "name a file: -o page.html");
  return std::filesystem::path(what).stem().string() + ".html";
}

Exit view_it(ViewArguments options) {
  if (options.output.empty()) options.output = default_output(options.what.front());
  if (options.what.size() > most_pictures)
    throw Failure(Exit::command_wrong,
                  "a page shows at most two plans, but there are " + std::to_string(options.what.size()));
  if (options.trace.size() > options.what.size())
    throw Failure(Exit::command_wrong, "there are more traces than plans",
                  "the first --trace belongs to the first plan, the second to the second");
  if (options.open && options.output == "-")
    throw Failure(Exit::command_wrong, "--open needs a file", "name one by -o page.html");
  std::vector<NamedFile> read{{"--machine", options.machine}, {"--topology", options.topology}};
  for (const std::string& what : options.what) read.push_back({"", what});
  for (const std::string& trace : options.trace) read.push_back({"--trace", trace});
  keep_apart(read, {{"-o", options.output}});
  need_writable(options.output);
  const Machine machine = machine_of(options.machine, options.topology);
  std::vector<Picture> pictures;
  for (size_t at = 0; at < options.what.size(); ++at) {
    const std::string trace = at < options.trace.size() ? options.trace[at] : "";
    pictures.push_back(picture_of_file(options, options.what[at], trace, machine));
  }
  write_output(options.output, page_of(pictures));
  uint64_t findings = 0;
  for (const Picture& picture : pictures) findings += picture.findings.size();
  if (findings)
    std::cerr << "note: the page shows " << count(findings, "finding") << "; chorale check prints them\n";
  if (options.output != "-") std::cerr << "written to " << options.output << '\n';
  if (options.open) open_page(options.output);
  return Exit::well;
}

}  // namespace

Action command::view(CLI::App& app) {
  auto options = std::make_shared<ViewArguments>();
  app.add_option("what", options->what,
                 "Plan files, algorithms as for run, host schedules or traces: one, or two beside each other")
      ->required();
  app.add_option("-o,--output", options->output,
                 "Write the page to FILE; - is standard output; default: the name of the plan, with .html")
      ->type_name("FILE");
  app.add_option(
         "--trace", options->trace,
         "Show the times of a trace, which run --trace has written, beside the predicted ones; the second "
         "one is for the second plan")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--bytes", options->bytes, "Size of the message; default 1M")->type_name("SIZE");
  app.add_option("--ranks", options->ranks,
                 "Number of ranks, which a program gets as --set ranks=N; default: the plan's")
      ->transform(whole_number(1, 4096))
      ->type_name("N");
  app.add_option("--machine", options->machine, "The machine for predicted times; default: an NVIDIA H200's")
      ->type_name("FILE");
  declare_topology(app, options->topology, "How its GPUs are connected, see simulate");
  app.add_option("--dtype", options->dtype, "Type of an element; default f32")
      ->transform(dtype_word())
      ->type_name("NAME");
  app.add_option("--packet", options->packet, "Form of packets; default: by size")
      ->check(one_of("packet form", {std::begin(packet_form_names), std::end(packet_form_names)}))
      ->type_name("NAME");
  app.add_flag("--eager", options->eager,
               "Predict launches, or steps of a schedule, in a row; default: in a CUDA graph");
  declare_set_and_name(app, options->common);
  options->schedule.declare(app);
  app.add_option("--time", options->time,
                 "Host schedules: the time of each call of a function or launch of a plan, as NAME=20us; may "
                 "be repeated")
      ->type_name("NAME=TIME")
      ->allow_extra_args(false);
  declare_allow(app, options->allow);
  app.add_flag("--open", options->open, "Open the page in a browser");
  app.footer(
      "The page is one file, and needs no network. It shows when each operation runs, what it waits for,\n"
      "how the chunks move and what is wrong with the plan. docs/view.md describes it.");
  return [options] { return view_it(*options); };
}

}  // namespace chorale::tools
