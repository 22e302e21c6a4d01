/// \file
/// When a wait of the host is over.
#pragma once

#include <fmt/format.h>

#include <chrono>

#include "chorale/error.hpp"

namespace chorale::world {

/// `timeout` after `from`; the end of time if it is 0, which is no limit, or more than the clock can show.
inline std::chrono::steady_clock::time_point deadline_after(
    std::chrono::nanoseconds timeout,
    std::chrono::steady_clock::time_point from = std::chrono::steady_clock::now()) {
  constexpr auto never = std::chrono::steady_clock::time_point::max();
  return timeout.count() > 0 && timeout < never - from ? from + timeout : never;
}

/// \param option  its name, "JoinOptions::timeout"
/// \throws UsageError for a negative one
inline void check_timeout(std::chrono::nanoseconds timeout, const char* option) {
  if (timeout.count() >= 0) return;
  throw UsageError(fmt::format("{} is {} ns: it should be above 0, or 0 for waits without a limit", option,
                               timeout.count()));
}

}  // namespace chorale::world
