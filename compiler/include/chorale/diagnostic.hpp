#pragma once
/// \file
/// What we tell an author about a program or a plan: located, many at a time,
/// never thrown.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale {

/// Operation `op` (position in ThreadBlock::ops) of a thread block.
struct OpPlace {
  uint32_t rank = 0, threadblock = 0, op = 0;
};

struct Note {
  SourceLine line;  ///< line 0: that of `at`, else none
  std::optional<OpPlace> at;
  std::string text;
};

/// One finding. `text` starts in lower case, names both values, and has no final
/// period. `line` is the author's; if its line is 0 that of the operation is shown.
struct Diagnostic {
  std::string check;  ///< the check or rewrite that found it
  SourceLine line;
  std::optional<OpPlace> at;
  std::string text;
  std::vector<Note> notes;
  std::string help;  ///< what to change; empty if we do not know
  /// What is wrong in the plan file, as a JSON path: within the operation ("channel_ids/0"), or without one
  /// within the plan ("/gpus/0/channels/1"). Empty: the operation as a whole.
  std::string path = {};
};

using Diagnostics = std::vector<Diagnostic>;

/// Where a finding or a note sends its author: `line`, else that of the operation; line 0 if neither is
/// known.
SourceLine author_line(const Plan&, const SourceLine& line, const std::optional<OpPlace>& at);

/// One finding in compiler style: place, text, check, operation, notes, help.
///   mine.cpp:11: error: this wait is never answered [pairing]
///     rank 0, thread block 0, op 0: {"name":"wait","channel_ids":[0],"channel_type":"memory"}
///
/// What names a part of the plan file, or an operation without an author's line, has its JSON path below:
///     in the plan: /gpus/0/threadblocks/0/ops/0/channel_ids/0
///
/// \param severity  what it is called
std::string render(const Plan&, const Diagnostic&, const std::string& severity = "error");

/// All findings and the closing line "1 error" or "3 errors"; "" if there are none.
std::string render(const Plan&, const Diagnostics&);

}  // namespace chorale
