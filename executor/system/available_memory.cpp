#include "available_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <optional>

#include "chorale/error.hpp"

namespace chorale::system {
namespace {

/// Returns the number in a file; none if there is no file, or if it contains "max".
std::optional<uint64_t> number_in(const std::string& path) {
  uint64_t number = 0;
  if (std::ifstream(path) >> number) return number;
  return std::nullopt;
}

/// Returns the number after a word in a file of words and numbers; 0 if the word is not there.
uint64_t number_behind(const std::string& path, const std::string& wanted) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    uint64_t number = 0;
    if (word == wanted && file >> number) return number;
  }
  return 0;
}

/// Holds the file names of one version of control groups.
struct Names {
  const char *most, *taken, *droppable;
};
constexpr Names version_1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Names version_2 = {"memory.max", "memory.current", "inactive_file"};

/// Returns the bytes that a control group has left. If these are at least `enough` without the pages that the
/// kernel can drop, it does not count those pages: the kernel takes long to make the file that tells them.
uint64_t left_by(const std::string& folder, const Names& names, uint64_t enough) {
  const std::optional<uint64_t> most = number_in(folder + "/" + names.most);
  if (!most) return UINT64_MAX;
  const std::optional<uint64_t> taken = number_in(folder + "/" + names.taken);
  if (!taken) return UINT64_MAX;
  const uint64_t untaken = *most - std::min(*most, *taken);
  if (untaken >= enough) return untaken;
  const uint64_t droppable = number_behind(folder + "/memory.stat", names.droppable);
  const uint64_t kept = *taken - std::min(*taken, droppable);
  return *most - std::min(*most, kept);
}

/// Returns the least that a control group and its parents have left. A container may not see some of the
/// parents.
uint64_t left_by_all(const std::string& mount, std::string path, const Names& names, uint64_t enough) {
  uint64_t least = left_by(mount, names, enough);
  for (; path.size() > 1; path.resize(path.rfind('/')))
    least = std::min(least, left_by(mount + path, names, enough));
  return least;
}

}  // namespace

uint64_t available_memory(uint64_t enough, const std::string& root) {
  uint64_t least = number_behind(root + "/proc/meminfo", "MemAvailable:") << 10;
  if (least == 0) least = UINT64_MAX;
  const std::string mounts = root + "/sys/fs/cgroup";
  std::ifstream groups(root + "/proc/self/cgroup");
  // Lines are like "0::/a/b", or of version 1 like "4:memory:/a/b".
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1),
                      path = line.substr(second + 1);
    if (controllers.empty()) least = std::min(least, left_by_all(mounts, path, version_2, enough));
    if (controllers == "memory")
      least = std::min(least, left_by_all(mounts + "/memory", path, version_1, enough));
  }
  return least;
}

void require_memory(uint64_t bytes, const std::string& what) {
  if (bytes < least_required) return;
  const uint64_t available = available_memory(bytes);
  if (bytes <= available) return;
  throw RunError(RunError::Reason::resources,
                 fmt::format("{} takes {} bytes of memory, but this machine, or the control group of this "
                             "process, has {} left\n  help: use smaller messages or fewer ranks on this "
                             "machine, or lower CHORALE_ROUND_SCRATCH or CHORALE_SCRATCH",
                             what, bytes, available));
}

}  // namespace chorale::system
