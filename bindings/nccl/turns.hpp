#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>

namespace chorale::nccl {

/// Orders calls that make other communicators from one. Each runs in a thread of its own, but all ranks must
/// make them in the same order, so they take turns in the order of the calls.
class Turns {
 public:
  /// Returns the turn of the next call.
  uint64_t take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return next_++;
  }

  /// Waits until all earlier turns are over.
  void wait(uint64_t turn) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return now_ == turn; });
  }

  /// Ends a turn, whether its call has begun or not.
  void end(uint64_t turn) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_.insert(turn);
    while (ended_.erase(now_) != 0) ++now_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_ = 0, now_ = 0;
  std::set<uint64_t> ended_;  ///< turns that ended before an earlier one
};

}  // namespace chorale::nccl
