#pragma once
/// \file
/// An Element of an MSCCL file knows its line and the rules for its attributes. Every mistake becomes a
/// finding, and reading goes on.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <pugixml.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "findings.hpp"

namespace chorale::msccl {

/// Maps positions in a text to lines.
class Lines {
 public:
  explicit Lines(std::string_view text);
  uint32_t at(size_t offset) const;

 private:
  std::vector<size_t> ends_;
};

class Element {
 public:
  /// Reports attributes that occur twice.
  Element(pugi::xml_node, const Lines&, Findings&);

  uint32_t line() const { return line_; }
  std::string name() const { return node_.name(); }

  /// Returns the children with the first name, and those with the other name. Reports all others, and text.
  std::pair<std::vector<Element>, std::vector<Element>> children(const char* name, const char* other) const;
  std::vector<Element> children(const char* name) const { return children(name, name).first; }
  /// Returns the number of children of this name.
  size_t count(const char* name) const;
  /// Reports any content of the element.
  void no_children() const;

  /// Reads a number from `least` to `most`. Reports an attribute that is missing (if there is no
  /// `otherwise`), misspelt, or not a number. Spaces around the number do not count. Case, _ and - in the
  /// attribute's name do not count either.
  /// \returns `otherwise` if the attribute is missing; nothing if there is no `otherwise`, or no valid number
  std::optional<int64_t> number(const char* attribute, int64_t least, int64_t most,
                                std::optional<int64_t> otherwise = {}) const;
  /// Reads a number that may be missing, and returns nothing then.
  std::optional<int64_t> number_if_there(const char* attribute, int64_t least, int64_t most) const;
  /// Returns the position of the attribute's value among `words`. Otherwise it is like number(). Case, _ and
  /// - do not count.
  std::optional<size_t> choice(const char* attribute, std::span<const std::string_view> words,
                               std::optional<size_t> otherwise = {}) const;
  /// Returns the attribute's text, or null if it is missing. Reports that it is missing if it is `required`,
  /// or if another attribute has a similar name.
  const char* text(const char* attribute, bool required) const;

  void find(std::string text, std::string help = {}) const {
    findings_->add(line_, std::move(text), std::move(help));
  }

 private:
  /// Returns a text such as "rename its attribute 'col'" if an attribute that MSCCL does not know has a
  /// similar name.
  std::string misspelt(const char* attribute) const;
  /// Reports a child that is not allowed there.
  void foreign(pugi::xml_node child, const std::string& expected) const;

  pugi::xml_node node_;
  const Lines* lines_;
  Findings* findings_;
  uint32_t line_;
};

}  // namespace chorale::msccl
