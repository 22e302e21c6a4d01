#pragma once
/// \file
/// Checks and rewrites: one function each, listed in passes.def.

#include <string>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "chorale/target.hpp"

namespace chorale {

enum class ReplicationPolicy : uint8_t {
  interleaved,  ///< instance j owns the j-th share of every chunk
  none,         ///< one instance, whatever `instances` says
};

/// What the rewrites do, and for whom; says nothing about what the program computes.
struct CompileOptions {
  bool fuse = true;       ///< MSCCL++: instr_fusion
  bool auto_sync = true;  ///< dependency_sync
  uint32_t instances = 1;
  ReplicationPolicy replication = ReplicationPolicy::interleaved;
  Target target = Target::chorale;
  std::vector<std::string> allow = {};  ///< checks of the target to leave out, by name
};

namespace pass {
#define CHECK(name, summary) void name(const Plan&, Diagnostics&);
#define REWRITE(name, summary) bool name(Plan&, const CompileOptions&);
#include "chorale/passes.def"
}  // namespace pass

/// Runs every check; the first check with findings ends it, with all its findings.
Diagnostics check(const Plan&);

/// Runs the checks, then the rewrites, then the checks again, and in the end those of the target. The checks
/// are repeated after every rewrite that changed something; in plans of very many operations, after the last.
Diagnostics compile(Plan&, const CompileOptions& = {});

}  // namespace chorale
