#pragma once
/// \file
/// A finding tells an author what is wrong with a program or a plan, and where. Findings are collected and
/// never thrown.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale {

/// Names operation `op` of a thread block. `op` is the position in ThreadBlock::ops.
struct OpPlace {
  uint32_t rank = 0, threadblock = 0, op = 0;
  auto operator<=>(const OpPlace&) const = default;
};

/// Adds a fact to a finding, with a place of its own.
struct Note {
  SourceLine line;  ///< line 0: the line of the operation `at`, if there is one
  std::optional<OpPlace> at;
  std::string text;
};

/// Holds one finding. `text` starts in lower case, states both values, and has no final period. `line` is the
/// author's line. If it is 0, the line of the operation is shown.
struct Diagnostic {
  std::string check;  ///< name of the check or rewrite that found it
  SourceLine line;
  std::optional<OpPlace> at;
  std::string text;
  std::vector<Note> notes;
  std::string help;  ///< what to change; empty if unknown
  /// Holds the JSON path of the wrong part of the plan file. With an operation, the path starts at the
  /// operation ("channel_ids/0"). Without one, it starts at the plan ("/gpus/0/channels/1"). It is empty when
  /// the operation as a whole is wrong.
  std::string path = {};
};

using Diagnostics = std::vector<Diagnostic>;

/// Returns the line that is shown for a finding or a note: `line`, else the line of the operation. Its number
/// is 0 if neither is known.
SourceLine author_line(const Plan&, const SourceLine& line, const std::optional<OpPlace>& at);

/// Names the lists of an operation.
enum class OpList : uint8_t { sources, destinations, ids };

/// Returns the line of the call that an operation has an entry of a list from. An operation that the compiler
/// made of several calls has several lines.
/// \param position  of the entry in its list
SourceLine line_of_entry(const Plan&, const Op&, OpList, size_t position);

}  // namespace chorale
