#pragma once
/// \file
/// A finding of a proof is a diagnostic with the events that show it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "chorale/plan.hpp"

namespace chorale {

/// Holds the names of the proofs, see passes.def.
inline constexpr std::string_view proof_names[] = {
#define CHORALE_PROOF(name, summary) #name,
#include "chorale/passes.def"
};

/// Stands for every proof in a list of proofs to leave out.
inline constexpr std::string_view all_proofs = "proofs";

/// Describes one event of an execution: what a thread block, a proxy or the application does.
struct ProofEvent {
  enum class Who : uint8_t { block, proxy, application };
  Who who = Who::block;
  OpPlace at;                ///< application: only the rank counts
  uint32_t launch = 0;       ///< number of the launch; launches are executed one after the other
  uint32_t segment = 0;      ///< number of synchronisations that its block or proxy did before it
  bool accesses = false;     ///< it reads or overwrites chunks [begin, end) of a buffer
  bool writes = false;       ///< it overwrites them
  bool packets = false;      ///< they are packets
  uint32_t buffer_rank = 0;  ///< rank of that buffer
  BufferKind buffer = BufferKind::input;
  uint64_t begin = 0, end = 0;
};

/// Names the execution in which something was found. It is enough to execute it again, see
/// compiler/proof/execution/symbolic_executor.hpp.
struct ProofSetting {
  uint32_t message = 0;           ///< position in list_messages()
  bool one_storage = false;       ///< input and output are one memory
  uint32_t launches = 1;          ///< number of launches, one after the other
  std::vector<uint32_t> choices;  ///< which thread block went on, each time several competed
};

/// Holds an addend of a value, in words, and how often the value contains it.
struct Addend {
  std::string words;
  uint64_t times = 1;  ///< if it is the largest number of its type: at least so often
};

/// Holds one finding of a proof.
struct Finding {
  enum class Kind : uint8_t {
    undecided,  ///< nothing is proved, because one execution does not stand for all
    cycle,      ///< waits that wait for each other: each wait, then the operation that would answer it, which
                ///< comes too late
    unanswered,  ///< a wait that nothing answers: one event
    race,        ///< two accesses that are not ordered: first the one that came first in this execution, or
                 ///< a write before a read that came too early, when nothing had been written there
    value,       ///< an output with a wrong value: its last write, if any
  };
  std::string_view proof;  ///< one of proof_names
  Kind kind = Kind::undecided;
  std::vector<ProofEvent> events;
  /// Counts, for a race, the segments of the first event's block or proxy that the second event knows to have
  /// ended. If the second one is a read that came too early, it may know some of them only afterwards.
  uint32_t known = 0;
  /// These list, for a value, the addends that belong there (`expected`) and the addends that are there
  /// (`held`).
  std::vector<Addend> expected, held;
  ProofSetting setting;
  Diagnostic diagnostic;
};

}  // namespace chorale
