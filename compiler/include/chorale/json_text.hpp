/// \file
/// JSON becomes text here. File names and user input need not be UTF-8, and a plain dump() would throw then.
#pragma once

namespace chorale {

/// Returns the text of `json`, an nlohmann::basic_json. Bytes that are not UTF-8 become U+FFFD. `indent` is
/// that of dump().
template <class Json>
auto json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace chorale
