// chorale compile turns an algorithm into a plan.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "chorale/repeats.hpp"
#include "chorale/schedule/lint.hpp"
#include "tools/command.hpp"
#include "tools/findings.hpp"
#include "tools/programs.hpp"
#include "tools/proved.hpp"
#include "tools/python.hpp"

namespace chorale::tools {
namespace {

SourceLine line_of(const Plan& plan, const Diagnostic& finding) {
  return author_line(plan, finding.line, finding.at);
}

/// Replaces the plan with the plan of the fewest ranks that has the same finding.
void take_fewer_ranks(const std::string& name, dsl::Parameters::Settings& settings, const Aim& aim,
                      Built& built) {
  // A program in Python does not tell its parameters.
  if (is_python(name) || !takes_parameter(name, "ranks")) return;
  const Diagnostic& finding = built.diagnostics[0];
  for (uint32_t ranks = 2; ranks < built.plan.ranks(); ++ranks) {
    dsl::Parameters::Settings smaller = settings;
    smaller["ranks"] = std::to_string(ranks);
    try {
      Built fewer = build_program(name, smaller, aim);
      if (fewer.diagnostics.empty() || fewer.diagnostics[0].check != finding.check ||
          line_of(fewer.plan, fewer.diagnostics[0]) != line_of(built.plan, finding))
        continue;
      std::cerr << "note: the same is found with " << count(ranks, "rank") << ", which is shown\n";
      built = std::move(fewer);
      settings = std::move(smaller);
      return;
    } catch (const Failure&) {
      // Some programs do not take every number of ranks.
    }
  }
}

}  // namespace

Action command::compile(CLI::App& app) {
  struct CompileArguments {
    Wanted wanted;
    Aim aim;
    Telling telling;
    std::string output = "-";
    bool help_program = false;
  };
  auto options = std::make_shared<CompileArguments>();
  declare_wanted(
      app, options->wanted,
      "A source in C++ (*.cpp) or Python (*.py), a plugin (*.so) or the name of a shipped algorithm");
  declare_aim(app, options->aim, "default: the program's choice");
  app.add_flag("--minimize-syncs", options->aim.minimize_syncs,
               "Remove synchronisations of threads without which the proofs still hold");
  app.add_flag("--certify", options->aim.certify, "Write a certificate of what was proved into the plan");
  options->telling.declare(app);
  declare_quiet(app);
  declare_plan_output(app, options->output);
  app.add_flag("--help-program", options->help_program, "List the parameters of the program instead");
  return [options] {
    const Wanted& wanted = options->wanted;
    if (!names_program(wanted.what)) {
      throw Failure(Exit::command_wrong,
                    "'" + wanted.what + "' is not a source (*.cpp, *.py), plugin (*.so) or shipped name",
                    "plans need no compiling: chorale check or run takes them as they are");
    }
    std::vector<NamedFile> written = options->telling.files();
    written.push_back({"-o", options->output});
    keep_apart({{"", wanted.what}}, written);
    dsl::Parameters::Settings settings = parse_settings(wanted.set);
    const std::string name = load_program(wanted);
    if (options->help_program) {
      const dsl::Description program = describe_program(name);
      std::cout << program.name << (program.summary.empty() ? "" : ": " + program.summary) << '\n'
                << parameters_help(program);
      return Exit::well;
    }
    Built built = build_program(name, settings, options->aim);
    if (options->telling.shrinks() && !built.diagnostics.empty())
      take_fewer_ranks(name, settings, options->aim, built);
    const bool wrong =
        options->telling.tell(built.plan, wanted.what, words_to_run(wanted.what, wanted.name, settings),
                              built.diagnostics, options->aim.allow);
    if (!wrong && built.plan.extension.schedule)
      options->telling.warn(
          built.plan, wanted.what,
          schedule::lint(*built.plan.extension.schedule, {}, schedule::Mover::ce_put, options->aim.allow));
    if (!wrong) options->telling.warn(built.plan, wanted.what, find_repeats(built.plan));
    options->telling.finish();
    if (wrong) return Exit::plan_wrong;
    std::cerr << proved_words(built.plan, built.target, options->aim.allow);
    write_plan(options->output, built.plan);
    return Exit::well;
  };
}

}  // namespace chorale::tools
