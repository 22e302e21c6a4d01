#pragma once
/// \file
/// JSON as the plan reader and writer need it: a tree that keeps the order of keys
/// and the digits of numbers, and the few functions that write text.

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chorale::json {

struct Value {
  enum class Kind : uint8_t { null, boolean, number, other_number, string, array, object };

  Kind kind = Kind::null;
  bool boolean = false;
  uint64_t number = 0;            ///< number: a non-negative integer below 2^64
  std::string text;               ///< string; other_number: its digits
  std::vector<Value> items;       ///< array; object: the values, by key
  std::vector<std::string> keys;  ///< object: in the order of the text, without repeats

  /// The value of a key; null if there is none.
  const Value* find(std::string_view key) const;
};

/// Parses one JSON text. Refuses repeated keys and more than 64 levels.
/// \throws PlanError naming line and column
Value parse(std::string_view text);

/// Appends a value without spaces.
void dump(std::string& out, const Value& value);

/// Appends a string with its quotation marks.
void quote(std::string& out, std::string_view text);

inline void append(std::string& out, uint64_t value) {
  char digits[20];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

inline void append(std::string& out, std::string_view text) { out.append(text); }

/// Appends numbers and texts, one after the other.
template <class... Parts>
void put(std::string& out, const Parts&... parts) {
  (append(out, parts), ...);
}

}  // namespace chorale::json
