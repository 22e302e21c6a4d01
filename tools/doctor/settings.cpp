// Examines the configuration for `chorale doctor`.

#include <sstream>

#include "chorale/config.hpp"
#include "tools/doctor/examination.hpp"

namespace chorale::tools {

void examine_settings(Examination& found) {
  try {
    std::istringstream lines(Config::load().describe());
    found.pass("settings", "name = value  (where it is from)");
    for (std::string line; std::getline(lines, line);) found.more(line);
  } catch (const UsageError& error) {
    found.fail("settings", error.what(), "correct the variable or the file that CHORALE_CONFIG names");
  }
}

}  // namespace chorale::tools
