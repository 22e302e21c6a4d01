/// \file
/// Prints a prediction beside the measurements of --profile, when --machine is given.
#pragma once

#include <span>
#include <string>

#include "chorale/comparison.hpp"
#include "chorale/simulate.hpp"
#include "tools/profile.hpp"

namespace chorale::tools {

/// Describes the call that is compared with its prediction.
struct ComparedCall {
  const Plan& plan;
  const ProfiledCall& measured;
  const Machine& machine;
  double predicted_us = 0;  ///< the time of one call when many run in a row
};

/// Returns the comparison as lines of text, which docs/traces.md explains.
std::string text_of(const Comparison&, const ComparedCall&);

/// Simulates the call and compares it with the measurement, or says why it cannot be simulated.
/// \param call    the call, with its form of packets
/// \param spans   the spans of all ranks, which include the call's
std::string text_beside_prediction(const Plan&, const ProfiledCall& call, std::span<const TraceSpan> spans,
                                   Clocks clocks, Simulator&, const Machine&);

}  // namespace chorale::tools
