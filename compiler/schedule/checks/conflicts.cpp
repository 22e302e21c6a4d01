#include "conflicts.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "box_index.hpp"

namespace chorale::schedule {
namespace {

/// Lists the accesses to one box, without those that a later write replaces.
///
/// A write of a whole box replaces the accesses that it is compared with and that come before it. A later
/// access that conflicts with one of those overlaps the write, too. If it is ordered with the write, it is
/// ordered with them, because `before` is transitive. If a later write replaces this write, the same holds
/// for that one.
struct Users {
  const Box* box = nullptr;
  std::vector<const Access*> reads, writes;
};

bool covers(const Box& whole, const Box& part) {
  for (size_t axis = 0; axis < whole.lo.size(); ++axis) {
    if (part.lo[axis] < whole.lo[axis]) return false;
    if (part.lo[axis] + part.extent[axis] > whole.lo[axis] + whole.extent[axis]) return false;
  }
  return true;
}

}  // namespace

bool conflicts_are_in_order(const ConcreteTensor& tensor, const std::vector<const Access*>& list,
                            const std::function<bool(const Event&, const Event&)>& before) {
  std::vector<Users> boxes;
  std::map<std::pair<std::vector<uint64_t>, std::vector<uint64_t>>, size_t> numbers;
  std::vector<size_t> number_of;  // by access: the number of its box
  BoxIndex index(tensor);
  for (const Access* const one : list) {
    const auto [number, is_new] = numbers.try_emplace({one->box->lo, one->box->extent}, boxes.size());
    number_of.push_back(number->second);
    if (!is_new) continue;
    index.add(*one->box, boxes.size());
    boxes.push_back({.box = one->box, .reads = {}, .writes = {}});
  }
  index.build();
  for (size_t at = 0; at < list.size(); ++at) {
    const Access& now = *list[at];
    const auto in_order = [&](const Access* earlier) {
      return earlier->event == now.event || before(earlier->event, now.event);
    };
    for (const size_t number : index.near(*now.box)) {
      Users& users = boxes[number];
      if (!users.box->overlaps(*now.box)) continue;
      if (!std::all_of(users.writes.begin(), users.writes.end(), in_order)) return false;
      if (!now.writes) continue;
      if (!std::all_of(users.reads.begin(), users.reads.end(), in_order)) return false;
      if (!covers(*now.box, *users.box)) continue;
      for (std::vector<const Access*>* const of : {&users.reads, &users.writes})
        std::erase_if(*of, [&](const Access* earlier) { return earlier->event != now.event; });
    }
    Users& own = boxes[number_of[at]];
    (now.writes ? own.writes : own.reads).push_back(&now);
  }
  return true;
}

}  // namespace chorale::schedule
