#pragma once
/// \file
/// Findings say what is wrong with an MSCCL file, at its lines. The check of a finding tells whether the file
/// or the import is the cause.

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

  /// Adds a finding about a wrong file, which MSCCL could not run either.
  void add(uint32_t line, std::string text, std::string help = {}, std::vector<Note> notes = {}) {
    out_.push_back({"msccl", at(line), std::nullopt, std::move(text), std::move(notes), std::move(help)});
  }
  /// Adds a finding about a file that MSCCL may run, but that the import cannot read.
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

/// Quotes a word of the file for a message. It shortens the word and drops control characters of terminals.
std::string in_quotes(std::string_view word);

/// Returns a number with its noun, such as "1 chunk" or "2 chunks".
std::string counted(uint64_t number, const std::string& noun);

}  // namespace chorale::msccl
