/// \file
/// Turns JSON into text. Names of files and what users write need not be UTF-8, and a plain dump() then
/// throws.
#pragma once

namespace chorale {

/// Returns the text of `json`, an nlohmann::basic_json, with U+FFFD for bytes that are no UTF-8. `indent` is
/// that of its dump().
template <class Json>
auto json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace chorale
