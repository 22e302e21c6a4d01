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

/// The line of keys that csv_text() puts before rows like this one.
std::string csv_head(const nlohmann::ordered_json& row);

}  // namespace chorale::tools
