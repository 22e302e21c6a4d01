/// \file
/// A deadline limits a wait on the host.
#pragma once

#include <fmt/format.h>

#include <chrono>

#include "chorale/error.hpp"

namespace chorale::system {

/// Returns the time `timeout` after `from`. Returns the clock's maximum if `timeout` is 0, which means no
/// limit, or if the sum would overflow.
inline std::chrono::steady_clock::time_point deadline_after(
    std::chrono::nanoseconds timeout,
    std::chrono::steady_clock::time_point from = std::chrono::steady_clock::now()) {
  constexpr auto never = std::chrono::steady_clock::time_point::max();
  return timeout.count() > 0 && timeout < never - from ? from + timeout : never;
}

/// Checks a timeout.
/// \param option  its name in the error, such as "JoinOptions::timeout"
/// \throws UsageError if it is negative
inline void check_timeout(std::chrono::nanoseconds timeout, const char* option) {
  if (timeout.count() >= 0) return;
  throw UsageError(fmt::format("{} is {} ns: it should be above 0, or 0 for waits without a limit", option,
                               timeout.count()));
}

}  // namespace chorale::system
