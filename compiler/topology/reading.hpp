#pragma once
/// \file
/// Files of machines and of topologies are JSON that people write. These functions refuse what is wrong in
/// them, with the JSON path, the value and the remedy.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "chorale/did_you_mean.hpp"
#include "chorale/json_text.hpp"
#include "chorale/topology.hpp"
#include "chorale/usage_error.hpp"

namespace chorale::topology {

using Json = nlohmann::ordered_json;

inline constexpr uint64_t most_file_bytes = 256 << 20;

/// Holds a value and the place where it stands.
struct Value {
  const Json& json;
  std::string origin;  ///< the name of the file
  std::string path;    ///< "" for the whole file

  [[noreturn]] void refuse(const std::string& remedy) const {
    std::string shown = json_text(json);
    if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
    throw UsageError(fmt::format("{}: {} is {}: {}", origin, path.empty() ? "/" : path, shown, remedy));
  }

  template <class Key>
  Value at(const Key& key) const {
    return {json.at(key), origin, fmt::format("{}/{}", path, key)};
  }

  bool has(std::string_view key) const { return json.contains(key); }

  /// Returns the value of a key.
  /// \param remedy  what to do if there is none
  Value need(std::string_view key, const std::string& remedy) const {
    if (!has(key)) throw UsageError(fmt::format("{}: {}/{} is missing: {}", origin, path, key, remedy));
    return at(key);
  }

  /// Refuses keys that are not known.
  /// \param what  the beginning of the message
  void only(std::span<const std::string_view> known, const char* what = "the key is unknown") const {
    for (const auto& [key, value] : json.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end())
        at(key).refuse(what + did_you_mean(key, known));
    }
  }

  std::string text(const char* expected) const {
    if (!json.is_string()) refuse(expected);
    return json.get<std::string>();
  }
};

/// Reads a topology that is an object in JSON.
/// \throws UsageError as parse_topology()
Topology read(const Value&);

/// Returns the shipped topology of a name.
/// \throws UsageError with the forms of names
Topology shipped(const std::string& name);
/// Returns whether a name begins with a family of shipped topologies, such as "switch:".
bool is_shipped(std::string_view name);

}  // namespace chorale::topology
