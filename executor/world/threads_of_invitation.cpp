#include "threads_of_invitation.hpp"

#include <map>
#include <mutex>
#include <optional>

#include "../system/thrown.hpp"

namespace chorale::world {
namespace {

/// Holds a group until all of its ranks have it.
struct Meant {
  std::shared_ptr<Group> group;
  std::optional<system::Thrown> failed;  ///< why there is no group
  int missing = 0;                       ///< the number of ranks that have not come
};

struct MeantGroups {
  std::mutex mutex;
  std::map<std::string, Meant> by_name;
};

MeantGroups& meant_groups() {
  static MeantGroups& all = *new MeantGroups;  // threads may still join at exit
  return all;
}

}  // namespace

std::shared_ptr<Group> group_of_threads(const std::string& name, int ranks, const Group::Options& options) {
  MeantGroups& all = meant_groups();
  const std::lock_guard lock(all.mutex);
  Meant& meant = all.by_name[name];
  if (!meant.group && !meant.failed) {
    meant.missing = ranks;
    meant.failed = system::thrown_by([&] { meant.group = std::make_shared<Group>(ranks, options); });
  }
  const Meant mine = meant;
  if (--meant.missing == 0) all.by_name.erase(name);
  if (mine.failed) throw RunError(mine.failed->reason, mine.failed->text);
  return mine.group;
}

}  // namespace chorale::world
