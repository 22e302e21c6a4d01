// chorale compile: an algorithm to a plan.

#include <iostream>
#include <memory>

#include "tools/command.hpp"
#include "tools/programs.hpp"

namespace chorale::tools {

Action command::compile(CLI::App& app) {
  struct Options {
    Wanted wanted;
    Aim aim;
    std::string output = "-";
    bool help_program = false;
  };
  auto options = std::make_shared<Options>();
  declare_wanted(app, options->wanted,
                 "A C++ source (*.cpp), a plugin (*.so) or the name of a shipped algorithm");
  declare_aim(app, options->aim, "by default what the program says");
  app.add_flag("--certify", options->aim.certify, "Write a certificate of what was proved into the plan");
  declare_plan_output(app, options->output);
  app.add_flag("--help-program", options->help_program, "List the parameters of the program instead");
  return [options] {
    const Wanted& wanted = options->wanted;
    if (!names_program(wanted.what)) {
      throw Failure(Exit::command_wrong,
                    "'" + wanted.what + "' is no C++ source (*.cpp), plugin (*.so) or shipped name",
                    "plans need no compiling: chorale check or run takes them as they are");
    }
    const dsl::Parameters::Settings settings = parse_settings(wanted.set);
    const std::string name = load_program(wanted);
    if (options->help_program) {
      const dsl::Description program = dsl::describe(name);
      std::cout << program.name << (program.summary.empty() ? "" : ": " + program.summary) << '\n'
                << parameters_help(program);
      return Exit::well;
    }
    const Built built = build_program(name, settings, options->aim);
    if (report(built.plan, built.diagnostics)) return Exit::plan_wrong;
    write_plan(options->output, built.plan);
    return Exit::well;
  };
}

}  // namespace chorale::tools
