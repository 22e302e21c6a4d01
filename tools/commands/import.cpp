// chorale import turns an algorithm of MSCCL into a plan.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "chorale/repeats.hpp"
#include "tools/algorithms.hpp"
#include "tools/command.hpp"
#include "tools/findings.hpp"
#include "tools/programs.hpp"
#include "tools/proved.hpp"

namespace chorale::tools {

Action command::import(CLI::App& app) {
  struct ImportArguments {
    std::string algorithm;
    Aim aim;
    Telling telling;
    std::string output = "-";
  };
  auto options = std::make_shared<ImportArguments>();
  app.add_option("algorithm", options->algorithm, "An XML file of MSCCL; - is standard input")->required();
  declare_aim(app, options->aim, "default: " + std::string(target_names[size_t(Target::chorale)]));
  app.add_flag("--minimize-syncs", options->aim.minimize_syncs,
               "Remove synchronisations of threads without which the proofs still hold");
  app.add_flag("--certify", options->aim.certify, "Write a certificate of what was proved into the plan");
  options->telling.declare(app);
  declare_quiet(app);
  declare_plan_output(app, options->output);
  return [options] {
    const std::string& path = options->algorithm;
    std::vector<NamedFile> written = options->telling.files();
    written.push_back({"-o", options->output});
    keep_apart({{"", path}}, written);
    const Built built = build_algorithm(path, options->aim);
    const bool wrong = options->telling.tell(built.plan, path, shell_line({&path, 1}), built.diagnostics,
                                             options->aim.allow);
    if (!wrong) options->telling.warn(built.plan, path, find_repeats(built.plan));
    options->telling.finish();
    if (wrong) return Exit::plan_wrong;
    std::cerr << proved_words(built.plan, built.target, options->aim.allow);
    write_plan(options->output, built.plan);
    return Exit::well;
  };
}

}  // namespace chorale::tools
