#pragma once
/// \file
/// Who else uses what: questions about a whole rank or plan that fusing two
/// operations has to ask.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "accesses.hpp"

namespace chorale {

/// All reads of a plan, to count those that touch given chunks.
class Readers {
 public:
  explicit Readers(const Plan&);
  /// How many reads touch the chunks of `access`.
  size_t count(const Access& access) const;
  /// How many of these accesses count() would count.
  static size_t count(const std::vector<Access>&, const Access&);

 private:
  struct Ends {
    std::vector<uint64_t> begins, ends;  // each sorted
  };
  std::vector<std::array<Ends, 3>> by_rank_;
};

/// For every channel and semaphore of a rank the one thread block that waits on it.
class Waiters {
 public:
  explicit Waiters(const Gpu&);
  /// True if no block but `block` waits on anything that `op` waits on.
  bool only(const ThreadBlock& block, const Op& op) const;

 private:
  static constexpr int64_t nobody = -1, several = -2;
  std::vector<int64_t> blocks_[4];  // by channel type (none: semaphores) and id: position of the block
};

}  // namespace chorale
