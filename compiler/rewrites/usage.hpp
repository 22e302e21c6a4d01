#pragma once
/// \file
/// Readers and Waiters answer questions about a whole rank or plan, which the rewrite fuse asks.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "accesses.hpp"

namespace chorale {

/// Counts the reads of a plan that overlap given chunks.
class Readers {
 public:
  explicit Readers(const Plan&);
  /// Returns how many reads overlap the chunks of `access`.
  size_t count(const Access& access) const;
  /// Returns how many of these accesses overlap the given one, by the same rules.
  static size_t count(const std::vector<Access>&, const Access&);

 private:
  struct Ends {
    std::vector<uint64_t> begins, ends;  // each sorted
  };
  std::vector<std::array<Ends, 3>> by_rank_;
};

/// Knows the only thread block that waits on a channel or semaphore of a rank, if there is just one.
class Waiters {
 public:
  explicit Waiters(const Gpu&);
  /// Returns whether no block except `block` waits on anything that `op` waits on.
  bool only(const ThreadBlock& block, const Op& op) const;

 private:
  static constexpr int64_t nobody = -1, several = -2;
  std::vector<int64_t> blocks_[std::size(
      channel_type_names)];  // by channel type (none: semaphores) and id: id of the thread block
};

}  // namespace chorale
