/// \file
/// Rows of results as CSV.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace chorale::tools {

/// A line of keys, then a line for each of `rows`, objects with the same keys; null is an empty field.
/// Without rows nothing.
std::string csv_text(const std::vector<nlohmann::ordered_json>& rows);

}  // namespace chorale::tools
