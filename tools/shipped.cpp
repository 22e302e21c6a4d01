#include "tools/shipped.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "tools/plans.hpp"

namespace chorale::tools {
namespace {

namespace fs = std::filesystem;

fs::path folder() {
  try {
    return fs::path(shipped_folder()) / "schedules";
  } catch (const Failure&) {
    return {};  // no plans are shipped
  }
}

}  // namespace

std::vector<std::string> shipped_schedules() {
  std::vector<std::string> names;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder(), none)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string shipped_schedule(const std::string& name) {
  const std::vector<std::string> names = shipped_schedules();
  if (std::find(names.begin(), names.end(), name) == names.end()) return "";
  return (folder() / (name + ".json")).string();
}

}  // namespace chorale::tools
