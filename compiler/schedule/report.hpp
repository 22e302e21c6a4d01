#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "chorale/diagnostic.hpp"
#include "chorale/schedule/schedule.hpp"
#include "compiler/plan/report.hpp"

namespace chorale::schedule {

/// Adds a finding, unless the check already has one at this line for another rank or turn.
/// \return null if it adds none
inline Diagnostic* report(Diagnostics& out, const Schedule& schedule, const char* check, uint32_t at,
                          std::string text, std::string help = {}) {
  const SourceLine line = schedule.line_of(at);
  const auto same = [&](const Diagnostic& other) { return at && other.check == check && other.line == line; };
  if (std::any_of(out.begin(), out.end(), same)) return nullptr;
  out.push_back({check, line, {}, std::move(text), {}, std::move(help)});
  return &out.back();
}

inline void note(Diagnostic* finding, const Schedule& schedule, uint32_t at, std::string text) {
  if (finding) finding->notes.push_back({schedule.line_of(at), {}, std::move(text)});
}

/// Adds the note "with 2 ranks", or another number, to all findings.
inline void note_ranks(Diagnostics& findings, uint32_t ranks) {
  for (Diagnostic& finding : findings) finding.notes.push_back({{}, {}, "with " + count(ranks, "rank")});
}

}  // namespace chorale::schedule
