// chorale doctor: what works on this machine, and what to do about the rest.

#include <iostream>
#include <memory>

#include "chorale/compile.hpp"
#include "tools/command.hpp"
#include "tools/doctor/examination.hpp"
#include "tools/findings.hpp"
#include "tools/programs.hpp"

namespace chorale::tools {
namespace {

struct Options {
  std::string plan, bytes = "1M", dtype = "f32", only;
};

const std::vector<std::string> parts = {"host", "versions", "settings", "gpus"};

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (const DType type : all_dtypes) names.push_back(dtype_name(type));
  return names;
}

DType dtype_of(const std::string& name) {
  for (const DType type : all_dtypes) {
    if (name == dtype_name(type)) return type;
  }
  return DType::f32;  // --dtype takes no other word
}

void examine_machine(Examination& found, const std::string& only) {
  const auto wanted = [&](const char* part) { return only.empty() || only == part; };
  if (wanted("versions")) look_at_versions(found);
  if (wanted("host")) look_at_host(found);
  if (wanted("gpus")) look_at_gpus(found, find_gpus());
  if (wanted("settings")) look_at_settings(found);
}

}  // namespace

Action command::doctor(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::Option* const plan = app.add_option(
      "plan", options->plan, "A plan file or -: look only whether this machine has what it needs");
  app.add_option("--bytes", options->bytes, "Size of the message that the plan is for; default 1M")
      ->needs(plan)
      ->type_name("SIZE");
  app.add_option("--dtype", options->dtype, "Type of an element; default f32")
      ->needs(plan)
      ->check(one_of("dtype", dtype_names()))
      ->type_name("NAME");
  app.add_option("--only", options->only, "Only this part of the machine")
      ->excludes(plan)
      ->check(one_of("part", parts))
      ->type_name("NAME");
  return [options] {
    Examination found;
    if (options->plan.empty()) {
      examine_machine(found, options->only);
    } else {
      const uint64_t bytes = parse_bytes(options->bytes);
      const Plan plan = load_plan(options->plan);
      if (report(plan, check(plan))) return Exit::plan_wrong;
      look_at_plan(found, find_gpus(), plan, bytes, dtype_of(options->dtype));
    }
    std::cout << (found.well() ? "all is well\n" : "something is wrong: see FAIL above\n");
    return found.well() ? Exit::well : Exit::run_failed;
  };
}

}  // namespace chorale::tools
