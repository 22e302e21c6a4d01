/// \file
/// JSON as text. Names of files and what users write need not be UTF-8, at which a plain dump() throws.
#pragma once

namespace chorale {

/// `json`, an nlohmann::basic_json, with U+FFFD for what is no UTF-8; `indent` as of its dump().
template <class Json>
auto json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace chorale
