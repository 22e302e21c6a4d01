/// \file
/// What tables of where time went are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "chorale/source_line.hpp"

namespace chorale::tools {

inline double us(uint64_t ns) { return double(ns) / 1e3; }

/// "ring.cpp:12", or "-" if the plan does not say.
std::string line_words(const SourceLine&);

/// Rows with columns that are as wide as what is in them: so many of numbers, to the right, then words, to
/// the left.
std::string aligned(const std::vector<std::vector<std::string>>& rows, size_t numbers);

}  // namespace chorale::tools
