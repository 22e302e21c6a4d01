// chorale version.

#include <iostream>

#include "tools/command.hpp"

#ifndef CHORALE_VERSION
#define CHORALE_VERSION "unknown"
#endif

namespace chorale::tools {

Action command::version(CLI::App&) {
  return [] {
    std::cout << "chorale " CHORALE_VERSION "\n";
    return Exit::well;
  };
}

}  // namespace chorale::tools
