/// \file
/// These functions write parts of messages about ranks and waits.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace chorale::system {

/// Returns text like "30 s" or "0.5 s".
std::string seconds_text(std::chrono::nanoseconds time);

/// Returns text like "rank 3" or "ranks 1, 2 and 5 more".
std::string ranks_text(const std::vector<int>& ranks);

/// Errors of waits that timed out end with this remedy.
inline constexpr const char* more_time =
    "if it only takes longer, make the world with a longer timeout (JoinOptions, LocalOptions; "
    "CHORALE_TIMEOUT counts where Config::join() or local() makes them)";

}  // namespace chorale::system
