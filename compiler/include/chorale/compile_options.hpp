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
  bool fuse = true;        ///< MSCCL++: instr_fusion
  bool auto_sync = true;   ///< dependency_sync
  uint32_t instances = 1;  ///< copies that each take an equal share of every operand
  ReplicationPolicy replication = ReplicationPolicy::interleaved;
  Target target = Target::chorale;
  bool minimize_syncs = false;          ///< remove synchronisations of threads that no proof needs
  bool certify = false;                 ///< write a certificate into a plan of ours that was proved
  std::vector<std::string> allow = {};  ///< proofs, and checks of the target, to leave out, by name
};

}  // namespace chorale
