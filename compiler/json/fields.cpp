#include "fields.hpp"

#include <charconv>
#include <system_error>
#include <utility>

#include "chorale/did_you_mean.hpp"
#include "chorale/plan_error.hpp"

namespace chorale::json {
namespace {

/// Describes a value for a message: scalars by their value, others by their kind.
std::string describe(const Value& value) {
  constexpr size_t most = 60;
  if (value.kind == Value::Kind::array) return "a list";
  if (value.kind == Value::Kind::object) return "an object";
  std::string text;
  if (value.kind == Value::Kind::string && value.text.size() > most)
    return "a string of " + std::to_string(value.text.size()) + " bytes";
  dump(text, value);
  return text;
}

}  // namespace

std::string Node::path() const {
  if (!up) return {};
  std::string text = up->path() + "/";
  return text += key.data() ? std::string(key) : std::to_string(index);
}

void Node::refuse(const std::string& expected) const {
  throw PlanError(up ? path() : "/", describe(value) + ", expected " + expected);
}

uint64_t Node::number(uint64_t most) const {
  if (value.kind != Value::Kind::number) refuse("a non-negative integer");
  if (value.number > most) refuse("at most " + std::to_string(most));
  return value.number;
}

bool Node::boolean() const {
  if (value.kind != Value::Kind::boolean) refuse("true or false");
  return value.boolean;
}

const std::string& Node::text() const {
  if (value.kind != Value::Kind::string) refuse("a string");
  return value.text;
}

size_t Node::choice(std::span<const std::string_view> words) const {
  const std::string& word = text();
  for (size_t position = 0; position < words.size(); ++position) {
    if (words[position] == word) return position;
  }
  // A very long word is not a typing error, and its distance to other words is slow to compute.
  refuse(alternatives(words) + (word.size() < 60 ? did_you_mean(word, words) : ""));
}

size_t Node::items() const {
  if (value.kind != Value::Kind::array) refuse("a list");
  return value.items.size();
}

std::vector<uint32_t> Node::numbers() const {
  std::vector<uint32_t> list(items());
  for (size_t position = 0; position < list.size(); ++position) list[position] = item(position).number32();
  return list;
}

Fields::Fields(const Node& object) : object_(object) {
  if (object.value.kind != Value::Kind::object) object.refuse("an object");
}

Node Fields::at(std::string_view key) {
  if (const std::optional<Node> node = find(key)) return *node;
  throw PlanError(object_.up ? object_.path() : "/", "the key \"" + std::string(key) + "\" is missing");
}

std::optional<Node> Fields::find(std::string_view key) {
  const Value* value = object_.value.find(key);
  if (!value) {
    if (key.size() >= 6) absent_.at(absent_count_++) = key;
    return std::nullopt;
  }
  taken_.at(count_++) = value - object_.value.items.data();
  return Node{*value, &object_, key};
}

bool Fields::taken(size_t position) const {
  for (size_t k = 0; k < count_; ++k) {
    if (taken_[k] == position) return true;
  }
  return false;
}

uint32_t Fields::rest(Plan& plan) const {
  const Value& object = object_.value;
  if (object.keys.size() == count_) return 0;
  std::string text;
  for (size_t position = 0; position < object.keys.size(); ++position) {
    if (taken(position)) continue;
    const std::string& key = object.keys[position];
    const std::string meant =
        key.size() < 60 ? did_you_mean(key, std::span(absent_).first(absent_count_)) : "";
    if (!meant.empty())
      throw PlanError(object_.up ? object_.path() : "/", "the key \"" + key + "\" is unknown" + meant);
    if (!text.empty()) text += ',';
    quote(text, key);
    text += ':';
    dump(text, object.items[position]);
  }
  plan.extras.push_back(std::move(text));
  return uint32_t(plan.extras.size());
}

void Fields::none(std::span<const std::string_view> known) const {
  for (size_t position = 0; position < object_.value.keys.size(); ++position) {
    if (taken(position)) continue;
    const std::string& key = object_.value.keys[position];
    throw PlanError(object_.path(), "the key \"" + key.substr(0, 60) + "\" is unknown, expected " +
                                        alternatives(known) +
                                        (key.size() < 60 ? did_you_mean(key, known) : ""));
  }
}

SourceLine source_line(const Node& node) {
  SourceLine line;
  const std::string& text = node.text();
  const size_t colon = text.rfind(':');
  const char* end = text.data() + text.size();
  const char* digits = colon == text.npos ? end : text.data() + colon + 1;
  const auto [stop, error] = std::from_chars(digits, end, line.line);
  if (digits == end || stop != end || error != std::errc()) node.refuse("\"<file>:<line>\"");
  // A line such as "a.cpp:007" would be written differently.
  if (std::to_string(line.line) != std::string_view(digits, end - digits))
    node.refuse("a line without leading zeros");
  line.file = text.substr(0, colon);
  return line;
}

std::string alternatives(std::span<const std::string_view> words) {
  std::string text;
  for (size_t position = 0; position < words.size(); ++position) {
    if (position) text += position + 1 == words.size() ? " or " : ", ";
    text += words[position];
  }
  return text;
}

}  // namespace chorale::json
