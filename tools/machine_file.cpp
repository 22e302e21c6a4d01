#include "tools/machine_file.hpp"

#include <filesystem>

#include "chorale/usage_error.hpp"
#include "tools/command.hpp"
#include "tools/plans.hpp"

namespace chorale::tools {

Machine machine_of(const std::string& file) {
  std::filesystem::path path = file;
  if (file.empty())
    path = std::filesystem::path(shipped_folder()).parent_path() / "machines" / "nvidia_h200.json";
  try {
    return load_machine(path.string());
  } catch (const UsageError& wrong) {
    throw Failure(
        Exit::command_wrong, wrong.what(),
        "docs/simulation.md says what a machine file has; nvidia_h200.json beside the shipped plans is "
        "one to begin with");
  } catch (const std::runtime_error& unread) {
    throw Failure(Exit::command_wrong, unread.what());
  }
}

}  // namespace chorale::tools
