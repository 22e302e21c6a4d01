#pragma once
/// \file
/// A finding of a proof is a diagnostic with the events that show it.

#include <cstdint>
#include <optional>
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
  OpPlace at;                ///< the operation; of an event of the application, only the rank is set
  uint32_t launch = 0;       ///< number of the launch; launches are executed one after the other
  uint32_t segment = 0;      ///< how often its block or proxy had synchronised before
  bool accesses = false;     ///< the event reads or overwrites chunks [begin, end) of `buffer`
  bool writes = false;       ///< it overwrites them
  bool packets = false;      ///< these chunks hold packets
  uint32_t buffer_rank = 0;  ///< rank of `buffer`
  BufferKind buffer = BufferKind::input;
  uint64_t begin = 0, end = 0;
  /// Holds, for a wait or a post, which of the operation's ids it is about: a position in
  /// ThreadBlock::op_ids().
  std::optional<uint32_t> id;
};

/// Names the execution in which something was found. With it the plan can be executed again in the same way,
/// see compiler/proof/execution/symbolic_executor.hpp.
struct ProofSetting {
  uint32_t message = 0;           ///< position in list_messages()
  bool one_storage = false;       ///< input and output are one memory
  uint32_t launches = 1;          ///< number of launches, one after the other
  std::vector<uint32_t> choices;  ///< which thread block went on, each time several competed
};

/// Describes an addend of a value, and how often the value contains it.
struct Addend {
  std::string words;
  uint64_t times = 1;  ///< UINT64_MAX: at least this often
};

/// Holds one finding of a proof.
struct Finding {
  enum class Kind : uint8_t {
    undecided,   ///< nothing is proved, because one execution does not stand for all
    cycle,       ///< waits that wait for each other. `events` has each wait, and after it the operation that
                 ///< would answer it but comes too late
    unanswered,  ///< a wait that nothing answers. It is the one event
    race,        ///< two accesses without an order. events[0] came first in this execution. The exception
                 ///< is a read of memory that nothing had written: events[0] is then the later write
    value,       ///< an output with a wrong value. events[0] is its last write, or the application's if there
                 ///< is none. events[1] is the write at fault, if that is another one
  };
  std::string_view proof;  ///< one of proof_names
  Kind kind = Kind::undecided;
  std::vector<ProofEvent> events;
  /// Counts, for a race, the segments of events[0]'s block or proxy that are known to have ended at
  /// events[1]. If events[0] writes, only segments whose writes are visible count. If events[1] is a read
  /// that came too early, its block may have learned of some of them after the read.
  uint32_t known = 0;
  /// For a wrong value, `expected` lists the addends that belong there, and `held` those that are there.
  std::vector<Addend> expected, held;
  ProofSetting setting;
  Diagnostic diagnostic;
};

}  // namespace chorale
