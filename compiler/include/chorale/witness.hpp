#pragma once
/// \file
/// A witness is a counter-example: a few events of an execution that show why a proof found something.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "chorale/finding.hpp"
#include "chorale/plan.hpp"

namespace chorale {

/// Describes one event: something that an operation does in a launch, or the beginning or the end of a rank's
/// launch.
struct WitnessEvent {
  enum class Part : uint8_t {
    context,  ///< shows which order the culprits have
    culprit,  ///< is one of the two events that conflict, or a wait that does not end
    missing,  ///< an event that should happen and does not
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
  bool publishes = true;  ///< `to` sees what `from` wrote; else `to` only knows that `from` has ended
};

/// Holds the part of an execution that shows a finding.
struct Witness {
  static constexpr size_t most_events = 12, most_ranks = 4;

  std::vector<WitnessEvent> events;  ///< at most `most_events`, in an order in which they may happen
  std::vector<WitnessEdge> edges;
  uint32_t left_out = 0;              ///< number of events left out because there are too many
  std::vector<std::string> because;   ///< what the events show, one sentence each
  std::vector<std::string> remedies;  ///< changes that would order A and B; each was tried in an execution
  /// Says of two accesses in which order outputs are wrong, such as "mine.cpp:8 comes before mine.cpp:7";
  /// empty if neither order is known to be wrong.
  std::string wrong_order;
};

/// Runs the execution of a finding again, and returns the events that matter.
/// \param finding  a finding of prove_plan(plan)
Witness explain(const Plan& plan, const Finding& finding);

/// Holds a plan with fewer operations that has the same finding.
struct Shrunk {
  Plan plan;
  Finding finding;      ///< a finding in `plan` of the same proof and kind, at the same lines of the author
  uint32_t proofs = 0;  ///< number of proofs that were run
};

/// Leaves out ranks, thread blocks and operations as long as the finding stays. The result need not be the
/// smallest such plan. But no single part of it can be left out, unless `most_proofs` ended the search early.
/// If the finding names no operation, because one is missing, the whole plan stays.
/// \param most_proofs  limit of the number of proofs that are run
Shrunk shrink(const Plan& plan, const Finding& finding, uint32_t most_proofs = 500);

/// Returns lines of text, indented by two spaces. It is empty if there are no events.
std::string render(const Witness&);

}  // namespace chorale
