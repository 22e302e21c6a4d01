// chorale list: the shipped algorithms.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "tools/command.hpp"
#include "tools/programs.hpp"

namespace chorale::tools {

Action command::list(CLI::App& app) {
  auto only_names = std::make_shared<bool>(false);
  app.add_flag("--names", *only_names, "Names alone, one a line");
  return [only_names] {
    bool first = true;
    for (const dsl::RegisteredProgram& registered : dsl::programs()) {
      if (*only_names) {
        std::cout << registered.name << '\n';
        continue;
      }
      const dsl::Description program = describe_program(registered.name);
      std::cout << (first ? "" : "\n") << program.name << "  (" << program.file << ")\n";
      if (!program.summary.empty()) std::cout << "  " << program.summary << '\n';
      std::cout << parameters_help(program);
      first = false;
    }
    return Exit::well;
  };
}

}  // namespace chorale::tools
