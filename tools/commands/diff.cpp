// chorale diff compares two plans rank by rank and operation by operation.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "tools/command.hpp"
#include "tools/differences.hpp"
#include "tools/programs.hpp"

namespace chorale::tools {

Action command::diff(CLI::App& app) {
  struct DiffArguments {
    std::string left, right;
    std::vector<std::string> set;
    bool canonical = false;
  };
  auto options = std::make_shared<DiffArguments>();
  app.add_option("left", options->left,
                 "A plan file, or a source in C++ (*.cpp) or Python (*.py); - is standard input")
      ->required();
  app.add_option("right", options->right, "The plan to compare it with")->required();
  declare_sources_set(app, options->set);
  app.add_flag(
      "--canonical", options->canonical,
      "Ids of channels, remote buffers, semaphores, barriers and thread blocks may differ, if they mean "
      "the same");
  app.footer(
      "Lines of the left plan start with -, of the right with +. Authors' lines and certificates are not "
      "compared.\nExit status 1 if the plans differ.");
  return [options] {
    if (options->left == "-" && options->right == "-") {
      throw Failure(Exit::command_wrong, "only one of the plans can be standard input");
    }
    need_source(options->set, {options->left, options->right});
    const dsl::Parameters::Settings settings = parse_settings(options->set);
    Plan left = load_plan_or_source(options->left, settings);
    Plan right = load_plan_or_source(options->right, settings);
    const std::string text = differences(std::move(left), std::move(right), options->canonical);
    std::cout << text;
    return text.empty() ? Exit::well : Exit::plan_wrong;
  };
}

}  // namespace chorale::tools
