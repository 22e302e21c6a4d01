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
    bool canonical = false;
  };
  auto options = std::make_shared<DiffArguments>();
  app.add_option("left", options->left, "A plan file; - is standard input")->required();
  app.add_option("right", options->right, "The plan to compare it with")->required();
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
    Plan left = load_plan(options->left), right = load_plan(options->right);
    const std::string text = differences(std::move(left), std::move(right), options->canonical);
    std::cout << text;
    return text.empty() ? Exit::well : Exit::plan_wrong;
  };
}

}  // namespace chorale::tools
