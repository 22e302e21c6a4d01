#pragma once
/// \file
/// These are the checks of the target mscclpp. They report through a Finder.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "compiler/plan/report.hpp"
#include "compiler/plan/resolve.hpp"
#include "compiler/plan/roles.hpp"
#include "limits.hpp"

namespace chorale::mscclpp {

/// Adds the findings of one check, at most one per line of the author. The operations of one line are the
/// same on every rank and in every instance, except for the numbers.
class Finder {
 public:
  Finder(const Plan& plan, const char* check, Diagnostics& out) : plan_(plan), report_(check, out) {}

  /// \param path  see Diagnostic::path
  void add(std::optional<OpPlace> at, std::string text, std::string help = {}, std::string path = {});
  /// Adds a finding about a part of the plan other than an operation.
  void add_at(std::string path, std::string text, std::string help = {}) {
    add({}, std::move(text), std::move(help), std::move(path));
  }

 private:
  const Plan& plan_;
  Report report_;
  std::set<uint32_t> known_;  // Op::at
};

/// Returns the name of an operation in quotes, such as "'put'".
inline std::string name_of(const Op& op) { return "'" + std::string(info(op.code).name) + "'"; }

/// Returns the name of a thread block, such as "thread block 3 of rank 0".
inline std::string block_name(OpPlace at) {
  return "thread block " + number(at.threadblock) + " of " + rank_name(at.rank);
}

/// Returns the number of chunks into which a rank divides a message.
uint64_t message_chunks(const Plan&, const Gpu&);

/// Returns the bytes of a chunk in the largest message that the plan names. If it names none, the message is
/// as large as MSCCL++ can count. Returns 0 if the plan has no chunks.
uint64_t largest_chunk(const Plan&, const Gpu&);

/// Returns the size of the largest message whose offsets and sizes all stay below 2^32 bytes.
uint64_t largest_message(const Plan&);

#define CHORALE_CHECK(name, summary) void name(const Plan&, Finder&);
#include "checks.def"

}  // namespace chorale::mscclpp
