/// \file
/// An ImportCache keeps imports, indexed by the rank that gave them and the allocations that they open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "imported.hpp"

namespace chorale::cuda {

/// Keeps opened imports, so that each allocation is opened only once, also for other buffers in it.
class ImportCache {
 public:
  using Key = std::pair<int, std::vector<uint64_t>>;  ///< the rank, and its numbers of the allocations

  std::shared_ptr<Imported> find(const Key& key);  ///< empty: it has to be opened
  std::shared_ptr<Imported> open(const Key& key, std::span<const Foreign> parts);

  /// Closes imports that hold one of `freed`, even if they are in use. Freed memory stays allocated as long
  /// as a peer has it open, and a binding may keep it open for calls that never come again.
  void drop(int rank, const std::vector<uint64_t>& freed);

  /// Closes the imports that have been unused for longest, until at most `limit` unused ones are left.
  void limit_unused(size_t limit);

  size_t size() const { return held_.size(); }
  size_t opened() const { return opened_; }

 private:
  struct Entry {
    std::shared_ptr<Imported> imported;
    uint64_t last_use;
  };
  std::map<Key, Entry> held_;
  uint64_t uses_ = 0;
  size_t opened_ = 0;
};

}  // namespace chorale::cuda
