// chorale convert writes a plan file in its canonical text, or as CBOR.

#include <CLI/CLI.hpp>
#include <memory>

#include "tools/command.hpp"
#include "tools/programs.hpp"

namespace chorale::tools {

Action command::convert(CLI::App& app) {
  struct ConvertArguments {
    std::string plan, output = "-";
  };
  auto options = std::make_shared<ConvertArguments>();
  app.add_option("plan", options->plan, "A plan file; - is standard input")->required();
  declare_plan_output(app, options->output);
  app.footer("The plan is not checked: chorale check does that.");
  return [options] {
    write_plan(options->output, load_plan(options->plan));
    return Exit::well;
  };
}

}  // namespace chorale::tools
