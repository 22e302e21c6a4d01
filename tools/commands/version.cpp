// chorale version prints the version.

#include "tools/version.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

#include "tools/command.hpp"

namespace chorale::tools {

Action command::version(CLI::App&) {
  return [] {
    std::cout << "chorale " CHORALE_VERSION "\n";
    return Exit::well;
  };
}

}  // namespace chorale::tools
