#pragma once
/// \file
/// An element of an MSCCL file that knows its line and what its attributes must be: every mistake becomes a
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

/// Lines of a text by offset.
class Lines {
 public:
  explicit Lines(std::string_view text);
  uint32_t at(size_t offset) const;

 private:
  std::vector<size_t> ends_;
};

class Element {
 public:
  /// Finds attributes that are there twice.
  Element(pugi::xml_node, const Lines&, Findings&);

  uint32_t line() const { return line_; }
  std::string name() const { return node_.name(); }

  /// The children of this name. Finds all others, and text.
  std::vector<Element> children(const char* name) const;
  /// Finds whatever is in it.
  void no_children() const;

  /// A number from `least` to `most`. Finds one that is missing (if there is no `otherwise`), or is none.
  /// \returns `otherwise`, or nothing, where there is none
  std::optional<int64_t> number(const char* attribute, int64_t least, int64_t most,
                                std::optional<int64_t> otherwise = {}) const;
  /// The position of the attribute's value among `words`, as number().
  std::optional<size_t> choice(const char* attribute, std::span<const std::string_view> words,
                               std::optional<size_t> otherwise = {}) const;
  /// Null if it is missing, which is found if it is `required`.
  const char* text(const char* attribute, bool required) const;

  void find(std::string text, std::string help = {}) const {
    findings_->add(line_, std::move(text), std::move(help));
  }

 private:
  void missing(const char* attribute) const;
  /// Finds a child that does not belong there.
  void foreign(pugi::xml_node child, const std::string& expected) const;

  pugi::xml_node node_;
  const Lines* lines_;
  Findings* findings_;
  uint32_t line_;
};

}  // namespace chorale::msccl
