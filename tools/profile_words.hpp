/// \file
/// Formats the tables that say where time went.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "chorale/source_line.hpp"

namespace chorale::tools {

inline double us(uint64_t ns) { return double(ns) / 1e3; }

/// Returns "ring.cpp:12", or "-" if the plan does not say.
std::string line_words(const SourceLine&);

/// Aligns rows in columns that are as wide as their contents. The first `numbers` columns hold numbers and
/// align to the right. The others hold words and align to the left.
std::string aligned(const std::vector<std::vector<std::string>>& rows, size_t numbers);

}  // namespace chorale::tools
