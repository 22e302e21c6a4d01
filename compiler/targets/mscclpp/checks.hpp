#pragma once
/// \file
/// The checks of the target mscclpp, and how they report.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "../../checks/report.hpp"
#include "../../resolve.hpp"
#include "../../roles.hpp"
#include "limits.hpp"

namespace chorale::mscclpp {

/// Adds the findings of one check: one for an author's line, whose operations are the same on every rank and
/// in every instance, but for the numbers.
class Finder {
 public:
  Finder(const Plan& plan, const char* check, Diagnostics& out) : plan_(plan), report_(check, out) {}

  /// `path`: see Diagnostic::path.
  void add(std::optional<OpPlace> at, std::string text, std::string help = {}, std::string path = {});
  /// What is wrong with a part of the plan that is no operation.
  void add_at(std::string path, std::string text, std::string help = {}) {
    add({}, std::move(text), std::move(help), std::move(path));
  }

 private:
  const Plan& plan_;
  Report report_;
  std::set<uint32_t> known_;  // Op::at
};

/// "'put'"
inline std::string name_of(const Op& op) { return "'" + std::string(info(op.code).name) + "'"; }

/// "thread block 3 of rank 0"
inline std::string block_name(OpPlace at) {
  return "thread block " + number(at.threadblock) + " of " + rank_name(at.rank);
}

/// Into how many chunks a rank divides a message.
uint64_t message_chunks(const Plan&, const Gpu&);

/// Bytes of a chunk in the largest message, or, if the plan names none, in one of as many bytes as MSCCL++
/// counts to; 0 if the plan has no chunks.
uint64_t largest_chunk(const Plan&, const Gpu&);

/// The largest message of which all offsets and sizes stay below 2^32 bytes.
uint64_t largest_message(const Plan&);

#define CHORALE_CHECK(name, summary) void name(const Plan&, Finder&);
#include "checks.def"

}  // namespace chorale::mscclpp
