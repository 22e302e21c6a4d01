// chorale completion prints the scripts by which shells complete words.

#include "tools/completion.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "tools/command.hpp"

namespace chorale::tools {

Action command::completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("shell", *shell, "The shell")->required()->check(one_of("shell", {"bash", "zsh"}));
  app.footer(
      "An installation has both scripts, in share/bash-completion/completions and share/zsh/site-functions.");
  return [&app, shell] {
    const CLI::App& all = *app.get_parent();
    std::cout << (*shell == "bash" ? bash_completion(all) : zsh_completion(all));
    return Exit::well;
  };
}

}  // namespace chorale::tools
