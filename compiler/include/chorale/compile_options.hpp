#pragma once
/// \file
/// The options of the compiler.

#include <cstdint>
#include <string>
#include <vector>

#include "chorale/target.hpp"

namespace chorale {

/// Says how the copies of a program share its data. CompileOptions::instances is the number of copies.
enum class ReplicationPolicy : uint8_t {
  interleaved,  ///< instance j owns the j-th share of every operand
  none,         ///< one instance, whatever `instances` says
};

/// Says what the rewrites do, and for which target. No option changes what the program computes.
struct CompileOptions {
  bool fuse = true;        ///< run the rewrite `fuse`; MSCCL++: instr_fusion
  bool auto_sync = true;   ///< run the rewrite `dependency_sync`
  uint32_t instances = 1;  ///< copies that each take an equal share of every operand
  ReplicationPolicy replication = ReplicationPolicy::interleaved;
  Target target = Target::chorale;
  bool minimize_syncs = false;  ///< remove synchronisations of threads that no proof needs
  bool certify = false;  ///< write a certificate into the plan if all proofs hold; Target::chorale only
  /// Names the proofs and the checks of the target that are left out. With `certify` it may name no proof.
  std::vector<std::string> allow = {};
};

}  // namespace chorale
