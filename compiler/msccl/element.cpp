#include "element.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <iterator>
#include <system_error>
#include <unordered_set>

#include "chorale/did_you_mean.hpp"
#include "compiler/json/fields.hpp"

namespace chorale::msccl {
namespace {

constexpr size_t most_of_a_word = 60;

/// Lists the attributes that MSCCL has on any element. None of them counts as a misspelling of another.
constexpr std::string_view attributes[] = {
    "name",     "proto", "nchannels", "nchunksperloop", "ngpus",    "coll",       "inplace",       "minBytes",
    "maxBytes", "id",    "i_chunks",  "o_chunks",       "s_chunks", "outofplace", "send",          "recv",
    "chan",     "s",     "type",      "srcbuf",         "srcoff",   "dstbuf",     "dstoff",        "cnt",
    "depid",    "deps",  "hasdep",    "redop",          "maxcount", "nthreads",   "nthreadblocks", "i_off",
    "o_off"};

/// Returns a word in lower case without _ and -, because files spell reduce_scatter in several ways.
std::string bare(std::string_view word) {
  std::string letters;
  for (const char letter : word) {
    if (letter != '_' && letter != '-') letters += char(std::tolower(static_cast<unsigned char>(letter)));
  }
  return letters;
}

/// Returns a number without surrounding spaces and without a plus sign.
std::string_view trimmed(std::string_view word) {
  constexpr std::string_view spaces = " \t\r\n";
  while (!word.empty() && spaces.find(word.front()) != spaces.npos) word.remove_prefix(1);
  while (!word.empty() && spaces.find(word.back()) != spaces.npos) word.remove_suffix(1);
  if (word.size() > 1 && word[0] == '+' && word[1] != '-') word.remove_prefix(1);
  return word;
}

/// Suggests a word for a misspelt one. Long words are not misspelt ones, and comparing them takes long.
std::string suggestion(std::string_view word, std::span<const std::string_view> words) {
  return word.size() < most_of_a_word ? did_you_mean(word, words) : "";
}

}  // namespace

std::string in_quotes(std::string_view word) {
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
  std::unordered_set<std::string> seen;
  for (const pugi::xml_attribute attribute : node.attributes()) {
    if (!seen.insert(bare(attribute.name())).second)
      find("<" + name() + "> has the attribute " + in_quotes(attribute.name()) + " twice");
  }
}

void Element::foreign(pugi::xml_node child, const std::string& expected) const {
  const uint32_t line = lines_->at(size_t(std::max<ptrdiff_t>(child.offset_debug(), 0)));
  const bool element = child.type() == pugi::node_element;
  if (!element) {
    findings_->add(
        line, "<" + name() + "> contains the text " + in_quotes(child.value()) + ", expected " + expected);
    return;
  }
  const std::string what =
      "<" + name() + "> contains an element " + in_quotes(child.name()) + ", expected " + expected;
  if (std::string_view(child.name()) == "op") {
    findings_->add(
        line, what,
        "<op> leaves out one side of each step, and MSCCL reads <step> only: have the file written "
        "with old_format=True");
  } else {
    findings_->unread(line, what, "MSCCL skips what it does not know: delete it, or correct its name");
  }
}

std::pair<std::vector<Element>, std::vector<Element>> Element::children(const char* name,
                                                                        const char* other) const {
  std::pair<std::vector<Element>, std::vector<Element>> found;
  for (const pugi::xml_node child : node_.children()) {
    const bool element = child.type() == pugi::node_element;
    if (element && std::strcmp(child.name(), name) == 0) {
      found.first.emplace_back(child, *lines_, *findings_);
    } else if (element && std::strcmp(child.name(), other) == 0) {
      found.second.emplace_back(child, *lines_, *findings_);
    } else {
      foreign(child, "<" + std::string(name) + ">");
    }
  }
  return found;
}

size_t Element::count(const char* name) const {
  const auto children = node_.children(name);
  return size_t(std::distance(children.begin(), children.end()));
}

void Element::no_children() const {
  for (const pugi::xml_node child : node_.children()) foreign(child, "nothing");
}

std::string Element::misspelt(const char* attribute) const {
  std::vector<std::string_view> others;
  for (const pugi::xml_attribute other : node_.attributes()) {
    if (std::find(std::begin(attributes), std::end(attributes), other.name()) == std::end(attributes))
      others.push_back(other.name());
  }
  const std::string near = suggestion(attribute, others);
  const size_t quote = near.find('\'');
  return near.empty() ? "" : "rename its attribute " + near.substr(quote, near.rfind('\'') + 1 - quote);
}

const char* Element::text(const char* attribute, bool required) const {
  if (const pugi::xml_attribute found = node_.attribute(attribute)) return found.value();
  for (const pugi::xml_attribute other : node_.attributes()) {
    if (bare(other.name()) == bare(attribute)) return other.value();
  }
  const std::string near = misspelt(attribute);
  if (required || !near.empty()) find("<" + name() + "> has no attribute '" + attribute + "'", near);
  return nullptr;
}

std::optional<int64_t> Element::number(const char* attribute, int64_t least, int64_t most,
                                       std::optional<int64_t> otherwise) const {
  const char* const word = text(attribute, !otherwise);
  if (!word) return otherwise;
  const std::string_view digits = trimmed(word);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc{} && end == digits.data() + digits.size() && value >= least && value <= most)
    return value;
  find(std::string(attribute) + " is " + in_quotes(word) + ", expected a number from " +
       std::to_string(least) + " to " + std::to_string(most));
  return std::nullopt;
}

std::optional<int64_t> Element::number_if_there(const char* attribute, int64_t least, int64_t most) const {
  if (!text(attribute, false)) return std::nullopt;
  return number(attribute, least, most);
}

std::optional<size_t> Element::choice(const char* attribute, std::span<const std::string_view> words,
                                      std::optional<size_t> otherwise) const {
  const char* const word = text(attribute, !otherwise);
  if (!word) return otherwise;
  const auto found =
      std::find_if(words.begin(), words.end(),
                   [&, letters = bare(word)](std::string_view known) { return bare(known) == letters; });
  if (found != words.end()) return size_t(found - words.begin());
  find(std::string(attribute) + " is " + in_quotes(word) + ", expected " + json::alternatives(words) +
       suggestion(word, words));
  return std::nullopt;
}

}  // namespace chorale::msccl
