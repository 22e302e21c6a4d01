#pragma once
/// \file
/// Decides whether the executions that are played speak for all others.

#include <cstdint>

#include "findings.hpp"
#include "symbolic_executor.hpp"

namespace chorale::proof {

/// Proofs walk through at most so many orders of blocks that compete for a semaphore or a channel.
inline constexpr uint32_t max_executions = 1024;

/// Returns whether pipelines with few turns stand for those with any number, see skew.hpp. Adds a finding if
/// not.
bool keeps_pace(const Plan&, Findings&);

/// Returns whether one execution of a plan speaks for all, or its author has said that some of them have to
/// do. Adds findings if not.
/// \param bounded  set to true if thread blocks compete, so that other executions may differ
bool is_decided(const SymbolicExecutor&, Findings&, bool& bounded);

}  // namespace chorale::proof
