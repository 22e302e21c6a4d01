/// \file
/// Describes plans in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "chorale/plan.hpp"

namespace chorale::tools {

/// Returns "ring.cpp:12", or "" if the plan does not say.
std::string author_line(const Plan&, const Op&);

/// Returns "allreduce of 8 ranks, LL, in place".
std::string headline(const Plan&);

/// Says which messages a plan takes: "messages of 4K bytes or more".
std::string message_words(const Plan&);

/// Returns a rank's scratch as a formula of the message: "0.75 x message up to 32M, then in rounds".
/// \param window  Config::round_scratch
std::string scratch_words(const Plan& plan, uint64_t window);

}  // namespace chorale::tools
