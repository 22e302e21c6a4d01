#pragma once
/// \file
/// Readers and Waiters answer the questions about a whole rank or plan that fusing two operations has to ask.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "accesses.hpp"

namespace chorale {

/// Counts the reads of a plan that touch given chunks.
class Readers {
 public:
  explicit Readers(const Plan&);
  /// Returns how many reads touch the chunks of `access`.
  size_t count(const Access& access) const;
  /// Returns how many of these accesses count() would count.
  static size_t count(const std::vector<Access>&, const Access&);

 private:
  struct Ends {
    std::vector<uint64_t> begins, ends;  // each sorted
  };
  std::vector<std::array<Ends, 3>> by_rank_;
};

/// Knows the one thread block that waits on each channel and semaphore of a rank.
class Waiters {
 public:
  explicit Waiters(const Gpu&);
  /// Returns true if no block but `block` waits on anything that `op` waits on.
  bool only(const ThreadBlock& block, const Op& op) const;

 private:
  static constexpr int64_t nobody = -1, several = -2;
  std::vector<int64_t> blocks_[std::size(
      channel_type_names)];  // by channel type (none: semaphores) and id: id of the thread block
};

}  // namespace chorale
