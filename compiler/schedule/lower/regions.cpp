#include "regions.hpp"

#include <algorithm>
#include <utility>

namespace chorale::schedule {
namespace {

/// Holds a region under construction.
struct Open {
  Region region;
  std::map<uint32_t, int> made;  ///< tensors, and the axis along which their slices are made
  bool closed = true;
};

bool uses(const Open& open, const Item& item) {
  return std::any_of(item.op.reads.begin(), item.op.reads.end(),
                     [&](const View& read) { return open.made.count(read.tensor) != 0; });
}

/// Returns whether everything that the item reads from this loop is there in the same turn.
bool in_step(const Open& open, const Item& item) {
  for (size_t k = 0; k < item.op.reads.size(); ++k) {
    const auto made = open.made.find(item.op.reads[k].tensor);
    if (made != open.made.end() && made->second != item.sliced_of_operand[k]) return false;
  }
  return true;
}

/// Returns whether the item brings a slice other than the turn's, as an exchange or a reduction does.
bool brings_others(const Item& item) {
  return item.action == Action::exchange || (item.loops && item.sliced == no_axis);
}

bool joins(const Open& open, const Item& item) {
  if (open.closed || !item.loops || !(open.region.turns == item.turns) || !in_step(open, item)) return false;
  // Transfers that wait for the compute of their turn would delay those of the next turn, which the next
  // compute needs.
  const bool leaves = item.action != Action::compute && uses(open, item);
  if (leaves) return open.region.arriving.empty();
  return !brings_others(item);
}

}  // namespace

bool Region::has(Action action) const {
  const std::vector<const Item*> all = items();
  return std::any_of(all.begin(), all.end(), [&](const Item* item) { return item->action == action; });
}

std::vector<const Item*> Region::items() const {
  std::vector<const Item*> all;
  for (const auto* list : {&arriving, &computing, &leaving})
    for (const Item& item : *list) all.push_back(&item);
  return all;
}

std::vector<Region> regions(std::vector<Item> items) {
  std::vector<Region> all;
  Open open;
  const auto close = [&] {
    if (!open.region.items().empty()) all.push_back(std::move(open.region));
    open = {};
  };
  for (Item& item : items) {
    if (!joins(open, item)) {
      close();
      open.region.loops = item.loops;
      open.region.turns = item.turns;
      open.region.at = item.op.at;
      open.closed = !item.loops;
    }
    const bool transfers = item.action != Action::compute;
    if (brings_others(item) || (transfers && uses(open, item))) open.closed = true;
    open.made[item.op.writes[0].tensor] = item.sliced;
    Region& region = open.region;
    std::vector<Item>& list = !transfers                  ? region.computing
                              : open.closed && item.loops ? region.leaving
                                                          : region.arriving;
    list.push_back(std::move(item));
  }
  close();
  return all;
}

}  // namespace chorale::schedule
