// chorale version.

#include <iostream>

#include "tools/command.hpp"
#include "tools/version.hpp"

namespace chorale::tools {

Action command::version(CLI::App&) {
  return [] {
    std::cout << "chorale " CHORALE_VERSION "\n";
    return Exit::well;
  };
}

}  // namespace chorale::tools
