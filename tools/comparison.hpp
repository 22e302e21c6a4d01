/// \file
/// --machine: what was predicted beside what --profile has measured, in words.
#pragma once

#include <span>
#include <string>

#include "chorale/comparison.hpp"
#include "chorale/simulate.hpp"
#include "tools/profile.hpp"

namespace chorale::tools {

/// Of whom a comparison is.
struct ComparedCall {
  const Plan& plan;
  const ProfiledCall& measured;
  const Machine& machine;
  double predicted_us = 0;  ///< of one call of many in a row
};

/// Lines of text, as docs/traces.md explains them.
std::string text_of(const Comparison&, const ComparedCall&);

/// Simulates the call and compares it with what was measured; or says why it cannot be simulated.
/// \param call    with its form of packets
/// \param spans   of all ranks, the call's among them
std::string text_beside_prediction(const Plan&, const ProfiledCall& call, std::span<const TraceSpan> spans,
                                   Clocks clocks, Simulator&, const Machine&);

}  // namespace chorale::tools
