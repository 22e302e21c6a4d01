/// \file
/// Provides the shipped plans as parameters of tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cpu/harness.hpp"

namespace chorale::test {

/// Returns the files of the plans for at most `most_ranks` ranks, without those that encode.
inline std::vector<std::filesystem::path> shipped_plans(uint32_t most_ranks) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "plans/shipped")) {
    const std::string stem = entry.path().stem().string();
    if (stem.find("_quantised_") != std::string::npos) continue;
    const size_t ranks = stem.find_last_of('_') + 1;
    if (entry.path().extension() == ".json" && std::stoul(stem.substr(ranks)) <= most_ranks)
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline std::string name_of_plan(const testing::TestParamInfo<std::filesystem::path>& file) {
  return file.param.stem().string();
}

}  // namespace chorale::test
