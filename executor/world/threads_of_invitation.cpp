#include "threads_of_invitation.hpp"

#include <map>
#include <mutex>
#include <optional>

#include "executor/system/thrown.hpp"

namespace chorale::world {
namespace {

/// Holds a group until all of its ranks have it.
struct Handover {
  std::shared_ptr<Group> group;
  std::optional<system::Thrown> failed;  ///< why there is no group
  int missing = 0;                       ///< the number of ranks that have not come
};

struct Handovers {
  std::mutex mutex;
  std::map<std::string, Handover> by_name;
};

Handovers& handovers() {
  static Handovers& all = *new Handovers;  // threads may still join at exit
  return all;
}

}  // namespace

std::shared_ptr<Group> group_of_threads(const std::string& name, int ranks, const Group::Options& options) {
  Handovers& all = handovers();
  const std::lock_guard lock(all.mutex);
  Handover& handover = all.by_name[name];
  if (!handover.group && !handover.failed) {
    handover.missing = ranks;
    handover.failed = system::thrown_by([&] { handover.group = std::make_shared<Group>(ranks, options); });
  }
  const Handover mine = handover;
  if (--handover.missing == 0) all.by_name.erase(name);
  if (mine.failed) throw RunError(mine.failed->reason, mine.failed->text);
  return mine.group;
}

}  // namespace chorale::world
