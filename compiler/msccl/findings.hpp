#pragma once
/// \file
/// Findings name what is wrong with an MSCCL file at its lines. The tag of a finding says whose fault it is.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chorale/diagnostic.hpp"

namespace chorale::msccl {

class Findings {
 public:
  Findings(std::string file, Diagnostics& out) : file_(std::move(file)), out_(out) {}

  /// The file is wrong: MSCCL could not run it, either.
  void add(uint32_t line, std::string text, std::string help = {}, std::vector<Note> notes = {}) {
    out_.push_back({"msccl", at(line), std::nullopt, std::move(text), std::move(notes), std::move(help)});
  }
  /// The reading is at fault: MSCCL may run it, the import does not read it.
  void unread(uint32_t line, std::string text, std::string help, std::vector<Note> notes = {}) {
    out_.push_back({"import", at(line), std::nullopt, std::move(text), std::move(notes), std::move(help)});
  }
  Note note(uint32_t line, std::string text) const { return {at(line), std::nullopt, std::move(text)}; }
  SourceLine at(uint32_t line) const { return {file_, line}; }
  bool empty() const { return out_.empty(); }

 private:
  std::string file_;
  Diagnostics& out_;
};

/// A word of the file in a message: not too much of it, and nothing that a terminal would obey.
std::string in_quotes(std::string_view word);

/// "1 chunk", "2 chunks".
std::string counted(uint64_t number, const std::string& noun);

}  // namespace chorale::msccl
