/// \file
/// new_folder() makes a folder for the files of a test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace chorale::test {

/// Makes an empty folder that no other process uses, and returns its path. The caller removes it.
inline std::string new_folder(const std::string& name) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / (name + "." + std::to_string(getpid()));
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path.string();
}

}  // namespace chorale::test
