#pragma once
/// \file
/// A reader of JSON uses Node and Fields to say what it expects. Every value knows its path, and every
/// mistake becomes a PlanError with that path.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/plan.hpp"
#include "json.hpp"

namespace chorale::json {

/// Holds a value and its path. A Node is on the stack, and its parent must live longer.
struct Node {
  const Value& value;
  const Node* up = nullptr;
  std::string_view key;  ///< the key in the parent, if that is an object
  size_t index = 0;      ///< the index in the parent, if that is a list

  std::string path() const;
  /// Throws that this value is not what is expected.
  /// \throws PlanError "<path>: <this value>, expected <expected>"
  [[noreturn]] void refuse(const std::string& expected) const;

  uint64_t number(uint64_t most = UINT64_MAX) const;
  uint32_t number32() const { return uint32_t(number(UINT32_MAX)); }
  uint16_t number16() const { return uint16_t(number(UINT16_MAX)); }
  bool boolean() const;
  const std::string& text() const;
  /// Returns the position of this word among `words`.
  size_t choice(std::span<const std::string_view> words) const;
  size_t items() const;  ///< of a list
  Node item(size_t position) const { return {value.items[position], this, {}, position}; }
  /// Reads a list of 32-bit numbers.
  std::vector<uint32_t> numbers() const;
};

/// Reads the keys of an object. rest() or none() handles keys that nobody has asked for.
class Fields {
 public:
  explicit Fields(const Node& object);

  /// Returns the value of a key.
  /// \throws PlanError if there is no such key
  Node at(std::string_view key);
  std::optional<Node> find(std::string_view key);
  bool has(std::string_view key) const { return object_.value.find(key); }

  /// Stores the keys that nobody has asked for in Plan::extras. Returns their position plus one, 0 if there
  /// are none.
  /// \throws PlanError for a key of six letters or more that resembles a missing one: otherwise a misspelt
  ///   "reduce_opp" would be ignored silently
  uint32_t rest(Plan&) const;
  /// Refuses keys that nobody has asked for.
  /// \throws PlanError if there are any; `known` is for the suggestion
  void none(std::span<const std::string_view> known) const;

 private:
  static constexpr size_t most_asked = 16;  ///< no reader asks for more keys of one object

  bool taken(size_t position) const;

  const Node& object_;
  std::array<size_t, most_asked> taken_;
  size_t count_ = 0;
  std::array<std::string_view, most_asked> absent_;  ///< keys that were asked for and are missing
  size_t absent_count_ = 0;
};

/// Reads "<file>:<line>".
SourceLine source_line(const Node&);

/// Joins words: `first`, `second` or `third`.
std::string alternatives(std::span<const std::string_view> words);

}  // namespace chorale::json
