#pragma once
/// \file
/// A Heap says which actor proceeds next.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace chorale::simulation {

/// Orders actors by time, the earliest first. Each entry has four children, because the top entry is mostly
/// replaced by one that is only a little later.
class Heap {
 public:
  struct Entry {
    double ns;
    uint32_t actor;
    bool operator<(const Entry& other) const { return ns != other.ns ? ns < other.ns : actor < other.actor; }
  };

  bool empty() const { return entries_.empty(); }
  /// Returns the earliest actor, which stays on top until it is replaced or popped.
  uint32_t hold() {
    entries_.front().ns = -1;
    return entries_.front().actor;
  }
  /// Returns whether any entry except the top one is before this one.
  bool any_before(const Entry& entry) const {
    for (size_t child = 1; child < std::min(size_t(5), entries_.size()); ++child) {
      if (entries_[child] < entry) return true;
    }
    return false;
  }

  void push(Entry entry) {
    size_t at = entries_.size();
    entries_.push_back(entry);
    for (; at > 0 && entry < entries_[(at - 1) / 4]; at = (at - 1) / 4) entries_[at] = entries_[(at - 1) / 4];
    entries_[at] = entry;
  }
  void pop() {
    const Entry last = entries_.back();
    entries_.pop_back();
    if (!entries_.empty()) replace_top(last);
  }
  void replace_top(Entry entry) {
    size_t at = 0;
    for (size_t first = 1; first < entries_.size(); first = 4 * at + 1) {
      size_t least = first;
      for (size_t child = first + 1; child < std::min(first + 4, entries_.size()); ++child) {
        if (entries_[child] < entries_[least]) least = child;
      }
      if (!(entries_[least] < entry)) break;
      entries_[at] = entries_[least];
      at = least;
    }
    entries_[at] = entry;
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace chorale::simulation
