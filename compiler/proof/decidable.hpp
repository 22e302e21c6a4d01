#pragma once
/// \file
/// These functions decide whether the executions that are tried stand for all others.

#include <cstdint>

#include "compiler/proof/execution/findings.hpp"
#include "compiler/proof/execution/symbolic_executor.hpp"

namespace chorale::proof {

/// Limits the number of orders of blocks that compete for a semaphore or a channel that the proofs execute.
inline constexpr uint32_t max_executions = 1024;

/// Returns whether the loop skew (loop_skew.hpp) does not depend on the number of turns, so that pipelines
/// with few turns stand for pipelines with any number. Adds a finding if it does.
bool has_fixed_skew(const Plan&, Findings&);

/// Returns whether one execution of a plan stands for all, or whether the author accepts that only some of
/// them are tried. Adds findings if not.
/// \param bounded  set to true if thread blocks compete, so that other executions may differ
bool is_decided(const SymbolicExecutor&, Findings&, bool& bounded);

}  // namespace chorale::proof
