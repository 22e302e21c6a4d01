#pragma once

#include <fmt/format.h>

#include <atomic>

#include "chorale/error.hpp"

namespace chorale {

/// Marks a call as running while it lives, because two threads at once would corrupt the bindings and the
/// count of launches.
class OneCall {
 public:
  /// \param what  the object that is called, such as "an executor"
  /// \throws UsageError if another call is running
  OneCall(std::atomic<bool>& in_use, const char* what) : in_use_(in_use) {
    if (!in_use_.exchange(true, std::memory_order_acquire)) return;
    throw UsageError(
        fmt::format("{0} takes one call at a time, and another thread is in one: give each thread that runs "
                    "collectives a world and {0} of its own, or let one thread make all calls",
                    what));
  }
  ~OneCall() { in_use_.store(false, std::memory_order_release); }
  OneCall(const OneCall&) = delete;

 private:
  std::atomic<bool>& in_use_;
};

}  // namespace chorale
