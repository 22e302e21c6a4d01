#include "element.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <system_error>
#include <unordered_set>

#include "../json/fields.hpp"
#include "chorale/did_you_mean.hpp"

namespace chorale::msccl {
namespace {

constexpr size_t most_of_a_word = 60;

/// Of MSCCL, of any element: none of them is a misspelt other one.
constexpr std::string_view attributes[] = {
    "name",     "proto", "nchannels", "nchunksperloop", "ngpus",    "coll",       "inplace", "minBytes",
    "maxBytes", "id",    "i_chunks",  "o_chunks",       "s_chunks", "outofplace", "send",    "recv",
    "chan",     "s",     "type",      "srcbuf",         "srcoff",   "dstbuf",     "dstoff",  "cnt",
    "depid",    "deps",  "hasdep"};

/// Words that are long are no misspelt ones, and comparing them takes time.
std::string suggestion(std::string_view word, std::span<const std::string_view> words) {
  return word.size() < most_of_a_word ? did_you_mean(word, words) : "";
}

}  // namespace

std::string quoted(std::string_view word) {
  std::string text = "'";
  for (const char letter : word.substr(0, most_of_a_word)) text += letter < 32 || letter > 126 ? '?' : letter;
  return text + (word.size() > most_of_a_word ? "...'" : "'");
}

std::string counted(uint64_t number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

Lines::Lines(std::string_view text) {
  for (size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1)) ends_.push_back(at);
}

uint32_t Lines::at(size_t offset) const {
  return uint32_t(std::lower_bound(ends_.begin(), ends_.end(), offset) - ends_.begin()) + 1;
}

Element::Element(pugi::xml_node node, const Lines& lines, Findings& findings)
    : node_(node),
      lines_(&lines),
      findings_(&findings),
      line_(lines.at(size_t(std::max<ptrdiff_t>(node.offset_debug(), 0)))) {
  std::unordered_set<std::string_view> seen;
  for (const pugi::xml_attribute attribute : node.attributes()) {
    if (!seen.insert(attribute.name()).second)
      find("<" + name() + "> has the attribute " + quoted(attribute.name()) + " twice");
  }
}

void Element::foreign(pugi::xml_node child, const std::string& expected) const {
  const uint32_t line = lines_->at(size_t(std::max<ptrdiff_t>(child.offset_debug(), 0)));
  const bool element = child.type() == pugi::node_element;
  findings_->add(line, (element ? "an element " + quoted(child.name()) : "text " + quoted(child.value())) +
                           " in <" + name() + ">, expected " + expected);
}

std::vector<Element> Element::children(const char* name) const {
  std::vector<Element> found;
  for (const pugi::xml_node child : node_.children()) {
    if (child.type() == pugi::node_element && std::strcmp(child.name(), name) == 0) {
      found.emplace_back(child, *lines_, *findings_);
    } else {
      foreign(child, "<" + std::string(name) + ">");
    }
  }
  return found;
}

void Element::no_children() const {
  for (const pugi::xml_node child : node_.children()) foreign(child, "nothing");
}

void Element::missing(const char* attribute) const {
  std::vector<std::string_view> others;
  for (const pugi::xml_attribute other : node_.attributes()) {
    if (std::find(std::begin(attributes), std::end(attributes), other.name()) == std::end(attributes))
      others.push_back(other.name());
  }
  const std::string near = suggestion(attribute, others);
  const size_t quote = near.find('\'');
  find("<" + name() + "> has no attribute '" + attribute + "'",
       near.empty() ? "" : "it has " + near.substr(quote, near.rfind('\'') + 1 - quote));
}

const char* Element::text(const char* attribute, bool required) const {
  const pugi::xml_attribute found = node_.attribute(attribute);
  if (found) return found.value();
  if (required) missing(attribute);
  return nullptr;
}

std::optional<int64_t> Element::number(const char* attribute, int64_t least, int64_t most,
                                       std::optional<int64_t> otherwise) const {
  const char* const word = text(attribute, !otherwise);
  if (!word) return otherwise;
  const std::string_view digits = word;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc{} && end == digits.data() + digits.size() && value >= least && value <= most)
    return value;
  find(std::string(attribute) + " is " + quoted(digits) + ", expected a number from " +
       std::to_string(least) + " to " + std::to_string(most));
  return std::nullopt;
}

std::optional<size_t> Element::choice(const char* attribute, std::span<const std::string_view> words,
                                      std::optional<size_t> otherwise) const {
  const char* const word = text(attribute, !otherwise);
  if (!word) return otherwise;
  const auto found = std::find(words.begin(), words.end(), word);
  if (found != words.end()) return size_t(found - words.begin());
  find(std::string(attribute) + " is " + quoted(word) + ", expected " + json::alternatives(words) +
       suggestion(word, words));
  return std::nullopt;
}

}  // namespace chorale::msccl
