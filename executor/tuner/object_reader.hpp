/// \file
/// Reads JSON files with known members, such as tables.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "chorale/error.hpp"
#include "chorale/read_file.hpp"

namespace chorale {

/// Reads an object with known members. Its errors name the problem and the place.
class ObjectReader {
 public:
  ObjectReader(const nlohmann::ordered_json& object, std::string where)
      : object_(object), where_(std::move(where)) {
    if (!object.is_object()) throw UsageError(where_ + ": an object is expected");
  }

  template <class T>
  void read(const char* name, T& value, bool needed = false) {
    known_.push_back(name);
    const auto at = object_.find(name);
    if (at == object_.end()) {
      if (needed) throw UsageError(fmt::format("{}: '{}' is missing", where_, name));
      return;
    }
    const bool fits = std::is_same_v<T, std::string> ? at->is_string()
                      : std::is_same_v<T, double>    ? at->is_number()
                                                     : at->is_number_unsigned();
    if (!fits) throw UsageError(fmt::format("{}: '{}' is {}", where_, name, at->dump()));
    if constexpr (std::is_integral_v<T>) {
      constexpr uint64_t most = std::numeric_limits<T>::max();
      if (at->get<uint64_t>() > most) {
        throw UsageError(fmt::format("{}: '{}' is {}: it is at most {}", where_, name, at->dump(), most));
      }
    }
    value = at->get<T>();
  }

  const nlohmann::ordered_json& child(const char* name) {
    known_.push_back(name);
    const auto at = object_.find(name);
    if (at == object_.end()) throw UsageError(fmt::format("{}: '{}' is missing", where_, name));
    return *at;
  }

  const nlohmann::ordered_json& array(const char* name) {
    const nlohmann::ordered_json& found = child(name);
    if (found.is_array()) return found;
    throw UsageError(fmt::format("{}: '{}' is {}: an array is expected", where_, name, found.dump()));
  }

  /// Throws if the object has a member that no call has read, because such a member is unknown.
  void end() const {
    for (const auto& [name, value] : object_.items()) {
      if (std::find(known_.begin(), known_.end(), name) == known_.end()) {
        throw UsageError(fmt::format("{}: '{}' is unknown", where_, name));
      }
    }
  }

 private:
  const nlohmann::ordered_json& object_;
  std::string where_;
  std::vector<std::string> known_;
};

/// Returns what `parse` makes of the text of a file.
/// \throws UsageError that names the file, if it cannot be read or `parse` throws one
template <class Parse>
auto parse_file(const std::string& path, const Parse& parse) {
  const std::string text = [&] {
    try {
      return read_file(path);
    } catch (const std::runtime_error& error) {
      throw UsageError(error.what());
    }
  }();
  try {
    return parse(text);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace chorale
