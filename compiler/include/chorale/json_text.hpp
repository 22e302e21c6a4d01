/// \file
/// Converts JSON to text. Names of files and input of users need not be UTF-8, and dump() alone would throw
/// for them.
#pragma once

namespace chorale {

/// Returns the text of `json`, an nlohmann::basic_json. Bytes that are not UTF-8 become U+FFFD.
/// \param indent  spaces per level, as in dump(); -1: all on one line
template <class Json>
auto json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace chorale
