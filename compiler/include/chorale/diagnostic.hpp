#pragma once
/// \file
/// Findings tell an author what is wrong with a program or a plan. They name the place, come many at a time,
/// and are never thrown.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale {

/// Names operation `op` (position in ThreadBlock::ops) of a thread block.
struct OpPlace {
  uint32_t rank = 0, threadblock = 0, op = 0;
};

struct Note {
  SourceLine line;  ///< line 0: the line of `at`, if there is one
  std::optional<OpPlace> at;
  std::string text;
};

/// Holds one finding. `text` starts in lower case, names both values, and has no final period. `line` is the
/// author's. When its line is 0, the line of the operation is shown.
struct Diagnostic {
  std::string check;  ///< name of the check or rewrite that found it
  SourceLine line;
  std::optional<OpPlace> at;
  std::string text;
  std::vector<Note> notes;
  std::string help;  ///< what to change; empty if we do not know
  /// Names the wrong part of the plan file by its JSON path. With an operation, the path is within the
  /// operation ("channel_ids/0"); without one, within the plan ("/gpus/0/channels/1"). It is empty when the
  /// operation as a whole is wrong.
  std::string path = {};
};

using Diagnostics = std::vector<Diagnostic>;

/// Returns the line that a finding or a note sends its author to: `line`, else that of the operation. The
/// line is 0 if neither is known.
SourceLine author_line(const Plan&, const SourceLine& line, const std::optional<OpPlace>& at);

/// Writes one finding as compilers do: place, text, check, operation, notes, help.
///   mine.cpp:11: error: this wait is never answered [pairing]
///     rank 0, thread block 0, op 0: {"name":"wait","channel_ids":[0],"channel_type":"memory"}
///
/// A finding about a part of the plan file, or about an operation without an author's line, has its JSON path
/// below:
///     in the plan: /gpus/0/threadblocks/0/ops/0/channel_ids/0
///
/// \param severity  the word for the finding in the text
std::string render(const Plan&, const Diagnostic&, const std::string& severity = "error");

/// Writes all findings and the closing line "1 error" or "3 errors". Returns "" if there are none.
std::string render(const Plan&, const Diagnostics&);

}  // namespace chorale
