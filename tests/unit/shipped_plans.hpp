#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace chorale::test {

/// Returns the paths of all shipped plans, sorted.
inline std::vector<std::string> shipped_plans() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(CHORALE_SOURCE_DIR "/plans/shipped"))
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace chorale::test
