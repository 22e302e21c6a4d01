#pragma once
/// \file
/// Counter-examples show with few events of an execution why a proof found something.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "chorale/proof.hpp"

namespace chorale {

/// Describes what an operation does in a launch, or the beginning or end of a rank's launch.
struct WitnessEvent {
  enum class Part : uint8_t {
    context,  ///< the reason why the culprits are ordered as far as they are
    culprit,
    missing,  ///< an event that would have had to happen, and does not
  };
  Part part = Part::context;
  ProofEvent::Who who = ProofEvent::Who::block;
  OpPlace at;  ///< application: only the rank counts
  uint32_t launch = 0;
  std::string mark;  ///< "A" or "B" for culprits
  std::string text;  ///< "put input[0:1] -> scratch[2:3] of rank 1"
  SourceLine line;   ///< the author's; line 0: unknown
};

/// Says that event `to` comes after event `from`.
struct WitnessEdge {
  uint32_t from = 0, to = 0;
  bool publishes = true;  ///< `to` sees what `from` wrote; else `from` is only known to be over
};

/// Holds the slice of an execution that shows a finding.
struct Witness {
  static constexpr size_t most_events = 12, most_ranks = 4;

  std::vector<WitnessEvent> events;  ///< in an order in which they may happen, at most `most_events`
  std::vector<WitnessEdge> edges;
  uint32_t left_out = 0;              ///< events that there was no room for
  std::vector<std::string> because;   ///< what the events show, a sentence each
  std::vector<std::string> remedies;  ///< changes with which A and B are in order, each of which was played
};

/// Plays the finding's execution again and keeps what matters.
/// \param finding  one that prove_plan(plan) found
Witness explain(const Plan& plan, const Finding& finding);

/// Holds a plan with fewer operations in which the same is found.
struct Shrunk {
  Plan plan;
  Finding finding;      ///< in `plan`: by the same proof, of the same kind, at the same lines of the author
  uint32_t proofs = 0;  ///< number of proofs that it took
};

/// Leaves out ranks, thread blocks and operations as long as the finding stays. The rest need not be the
/// smallest such plan, but no part of it can be left out alone, unless `most_proofs` were not enough to see.
Shrunk shrink(const Plan& plan, const Finding& finding, uint32_t most_proofs = 500);

/// Returns lines of text, two spaces in; empty if there are no events.
std::string render(const Witness&);

}  // namespace chorale
