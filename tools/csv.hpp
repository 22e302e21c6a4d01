#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace chorale::tools {

/// Returns a line of keys, then a line for each of `rows`, which are objects with the same keys. Null becomes
/// an empty field. Returns "" if there are no rows.
std::string csv_text(const std::vector<nlohmann::ordered_json>& rows);

/// Returns the line of keys that csv_text() writes above rows like this one.
std::string csv_head(const nlohmann::ordered_json& row);

}  // namespace chorale::tools
