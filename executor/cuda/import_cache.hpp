/// \file
/// Imports by who gave them and what they are.
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

/// Keeps what was opened, so that no allocation is opened twice and none again for the next buffer in it.
class ImportCache {
 public:
  using Key = std::pair<int, std::vector<uint64_t>>;  ///< rank, and its numbers of the allocations

  std::shared_ptr<Imported> find(const Key& key);  ///< empty: has to be opened
  std::shared_ptr<Imported> open(const Key& key, std::span<const Foreign> parts);

  /// Closes imports that hold one of these, in use or not: memory that was freed stays taken as long as a
  /// peer has it open, and bindings are kept for calls that may never be made again.
  void drop(int rank, const std::vector<uint64_t>& freed);

  /// Closes the longest unused, until there are no more than `limit`.
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
