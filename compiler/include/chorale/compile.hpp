#pragma once
/// \file
/// The compiler checks and rewrites plans. Each check and each rewrite is one function, listed in passes.def.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "chorale/target.hpp"

namespace chorale {

/// Says how the copies of a program share its data. CompileOptions::instances is the number of copies.
enum class ReplicationPolicy : uint8_t {
  interleaved,  ///< instance j owns the j-th share of every chunk
  none,         ///< one instance, whatever `instances` says
};

/// Says what the rewrites do, and for which target. No option changes what the program computes.
struct CompileOptions {
  bool fuse = true;        ///< MSCCL++: instr_fusion
  bool auto_sync = true;   ///< dependency_sync
  uint32_t instances = 1;  ///< copies that each take a share of every chunk
  ReplicationPolicy replication = ReplicationPolicy::interleaved;
  Target target = Target::chorale;
  bool minimize_syncs = false;          ///< remove synchronisations of threads that no proof needs
  bool certify = false;                 ///< write a certificate into a plan of ours that was proved
  std::vector<std::string> allow = {};  ///< proofs, and checks of the target, to leave out, by name
};

namespace pass {
#define CHORALE_CHECK(name, summary) void name(const Plan&, Diagnostics&);
#define CHORALE_REWRITE(name, summary) bool name(Plan&, const CompileOptions&);
#include "chorale/passes.def"
}  // namespace pass

/// Runs the checks in order. Stops after the first check with findings and returns all findings of that
/// check.
Diagnostics check(const Plan&);

/// Runs the proofs, except those named in `allow`. The plan must have no findings of check(). Stops after the
/// first proof with findings and returns all findings of that proof.
Diagnostics prove(const Plan&, const std::vector<std::string>& allow = {});

/// Runs the checks, then the rewrites, then the checks again, and at the end the proofs and the checks of the
/// target. Repeats the checks after every rewrite that changed something. For plans with very many
/// operations, repeats them only after the last rewrite.
/// \throws std::invalid_argument if the target or the policy does not exist, if `allow` has an unknown name,
///   or if two options exclude each other
Diagnostics compile(Plan&, const CompileOptions& = {});

/// Returns a plan that computes the same, and is also right when input and output of a rank are one memory.
/// It has more synchronisations of threads, if it needs them for that. Returns nothing if the plan is wrong
/// in place all the same. A plan with a certificate gets a new one. It takes as long as the proofs.
///
/// \param plan  without findings of check() and prove()
std::optional<Plan> also_in_place(const Plan& plan);

}  // namespace chorale
