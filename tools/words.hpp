/// \file
/// Describes plans in words, and formats the tables that say where time went.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "chorale/plan.hpp"
#include "chorale/source_line.hpp"

namespace chorale::tools {

/// Returns "ring.cpp:12", or "" if the plan does not say.
std::string author_line(const Plan&, const Op&);

/// Counts the operations of all thread blocks.
uint64_t operations(const Plan&);

/// Returns "allreduce of 8 ranks, LL, in place".
std::string headline(const Plan&);

/// Says which messages a plan takes: "messages of 4K bytes or more".
std::string message_words(const Plan&);

/// Returns a rank's scratch as a formula of the message: "0.75 x message up to 32M, then in rounds".
/// \param window  Config::round_scratch
std::string scratch_words(const Plan& plan, uint64_t window);

inline double us(uint64_t ns) { return double(ns) / 1e3; }

/// Returns "ring.cpp:12", or "-" if the plan does not say.
std::string line_words(const SourceLine&);

/// Aligns rows in columns that are as wide as their contents. The first `numbers` columns hold numbers and
/// align to the right. The others hold words and align to the left.
std::string aligned(const std::vector<std::vector<std::string>>& rows, size_t numbers);

}  // namespace chorale::tools
