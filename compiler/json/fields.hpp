#pragma once
/// \file
/// Node and Fields let a reader of JSON say what it expects. Every value knows its path, and every mistake
/// becomes a PlanError that names it.

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

/// Holds a value and the way to it. A Node lives on the stack, and its parent lives longer.
struct Node {
  const Value& value;
  const Node* up = nullptr;
  std::string_view key;  ///< in the parent, if that is an object
  size_t index = 0;      ///< in the parent, if that is a list

  std::string path() const;
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

/// Reads the keys of an object. Keys that were not asked for are left for rest() or none().
class Fields {
 public:
  explicit Fields(const Node& object);

  /// \throws PlanError if there is no such key
  Node at(std::string_view key);
  std::optional<Node> find(std::string_view key);
  bool has(std::string_view key) const { return object_.value.find(key); }

  /// Keeps the keys that were not asked for in Plan::extras. Returns their position plus one, 0 if there are
  /// none.
  /// \throws PlanError for a key of six letters or more that looks like one that was asked for in vain:
  ///   otherwise a misspelt "reduce_opp" would be left out without a word
  uint32_t rest(Plan&) const;
  /// \throws PlanError if any key was not asked for; `known` is for the suggestion
  void none(std::span<const std::string_view> known) const;

 private:
  static constexpr size_t most_asked = 16;  ///< no reader asks for more keys of one object

  bool taken(size_t position) const;

  const Node& object_;
  std::array<size_t, most_asked> taken_;
  size_t count_ = 0;
  std::array<std::string_view, most_asked> absent_;  ///< the keys that were asked for in vain
  size_t absent_count_ = 0;
};

/// Reads "<file>:<line>".
SourceLine source_line(const Node&);

/// Joins words: `first`, `second` or `third`.
std::string alternatives(std::span<const std::string_view> words);

}  // namespace chorale::json
