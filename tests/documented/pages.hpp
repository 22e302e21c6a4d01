/// \file
/// Provides the files and values that the snippets of the pages assume.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace chorale::test {

/// Makes a folder with the shipped plans and machines, and changes to it, because the pages name files by
/// relative paths. The destructor changes back and removes the folder.
class Folder {
 public:
  Folder() : before_(std::filesystem::current_path()) {
    std::string name = (std::filesystem::temp_directory_path() / "chorale_pages_XXXXXX").string();
    here_ = mkdtemp(name.data());
    const std::filesystem::path plans = std::filesystem::path(CHORALE_SOURCE_DIR) / "plans";
    std::filesystem::create_directories(here_ / "plans/tuned");
    for (const char* const given : {"shipped", "machines"})
      std::filesystem::create_directory_symlink(plans / given, here_ / "plans" / given);
    std::filesystem::current_path(here_);
  }
  ~Folder() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(here_);
  }
  Folder(const Folder&) = delete;

 private:
  std::filesystem::path before_, here_;
};

/// Returns a small whole number that depends on the rank and the position.
inline float value_at(int rank, uint64_t at) { return float((at * 7 + uint64_t(rank) * 3) % 16); }

inline std::vector<float> values_of(int rank, uint64_t elements) {
  std::vector<float> values(elements);
  for (uint64_t at = 0; at < elements; ++at) values[at] = value_at(rank, at);
  return values;
}

inline std::vector<float> sums_of(int ranks, uint64_t elements) {
  std::vector<float> sums(elements);
  for (int rank = 0; rank < ranks; ++rank)
    for (uint64_t at = 0; at < elements; ++at) sums[at] += value_at(rank, at);
  return sums;
}

/// Converts whole numbers up to 256 to bf16, which holds them exactly.
inline std::vector<uint16_t> bf16(const std::vector<float>& values) {
  std::vector<uint16_t> converted;
  for (const float value : values) converted.push_back(uint16_t(std::bit_cast<uint32_t>(value) >> 16));
  return converted;
}

}  // namespace chorale::test
