#pragma once
/// \file
/// The plan reader and writer need a JSON tree that keeps the order of keys and the digits of numbers. This
/// header has the tree and the few functions that write text.

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale::json {

struct Value {
  enum class Kind : uint8_t { null, boolean, number, other_number, string, array, object };

  Kind kind = Kind::null;
  bool boolean = false;
  uint64_t number = 0;            ///< number: a non-negative integer below 2^64
  std::string text;               ///< string; other_number: its digits
  std::vector<Value> items;       ///< array; object: the values, by key
  std::vector<std::string> keys;  ///< object: in the order of the text, without repeats

  /// Returns the value of a key; null if there is none.
  const Value* find(std::string_view key) const;

  /// Adds a last item. It reserves room for four, because most objects have about four keys, and growing item
  /// by item would take most of the time.
  Value& add() {
    if (items.capacity() == 0) items.reserve(4);
    return items.emplace_back();
  }
  std::string& add_key() {
    if (keys.capacity() == 0) keys.reserve(4);
    return keys.emplace_back();
  }
};

/// Limits how deep a plan may nest lists and objects.
inline constexpr size_t max_depth = 64;
inline std::string too_deep() { return "nesting deeper than " + std::to_string(max_depth) + " levels"; }

/// Returns a key that occurs twice; null if there is none.
const std::string* repeated(const std::vector<std::string>& keys);
inline constexpr size_t most_of_a_key = 60;  ///< in a message
inline std::string twice_in_one_object(const std::string& key) {
  return "the key \"" + key.substr(0, most_of_a_key) + "\" twice in one object";
}

/// Parses one JSON text. Refuses repeated keys and more than max_depth levels.
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

/// Appends numbers and texts in the given order.
template <class... Parts>
void put(std::string& out, const Parts&... parts) {
  (append(out, parts), ...);
}

/// Returns the plan's text with an empty list of ranks. text_of() returns the text of one rank.
std::string text_without_gpus(const Plan&);
std::string text_of(const Plan&, const Gpu&);

}  // namespace chorale::json
