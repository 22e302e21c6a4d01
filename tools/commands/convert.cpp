// chorale convert writes a plan file in its canonical text, as CBOR, or in the format of another tool.

#include <CLI/CLI.hpp>
#include <memory>

#include "chorale/checks.hpp"
#include "tools/command.hpp"
#include "tools/findings.hpp"
#include "tools/interchange.hpp"
#include "tools/programs.hpp"

namespace chorale::tools {
namespace {

struct ConvertArguments {
  std::string plan, to = "plan", output = "-";
};

Exit convert_it(const ConvertArguments& options) {
  const Plan plan = load_plan(options.plan);
  if (options.to == "plan") {
    write_plan(options.output, plan);
    return Exit::well;
  }
  keep_apart({{"", options.plan}}, {{"-o", options.output}});
  if (report(plan, chorale::check(plan))) return Exit::plan_wrong;
  write_output(options.output, msccl_text(plan));
  return Exit::well;
}

}  // namespace

Action command::convert(CLI::App& app) {
  auto options = std::make_shared<ConvertArguments>();
  app.add_option("plan", options->plan, "A plan file; - is standard input")->required();
  app.add_option("--to", options->to, "Format of the output: plan or msccl-xml; default plan")
      ->check(one_of("format", {"plan", "msccl-xml"}))
      ->type_name("NAME");
  declare_plan_output(app, options->output);
  app.footer("A plan is not checked: chorale check does that.");
  return [options] { return convert_it(*options); };
}

}  // namespace chorale::tools
