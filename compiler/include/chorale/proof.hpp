#pragma once
/// \file
/// The proofs check finished plans. They report findings in words and as events, and report facts about a
/// plan without findings. docs/proof.md says what they claim.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/diagnostic.hpp"

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
    race,        ///< two accesses that are not ordered: first the one that came first in this execution
    value,       ///< an output with a wrong value: its last write, if any
  };
  std::string_view proof;  ///< one of proof_names
  Kind kind = Kind::undecided;
  std::vector<ProofEvent> events;
  /// Counts, for a race, the segments of the first event's block or proxy that the second event knows to have
  /// ended.
  uint32_t known = 0;
  /// These list, for a value, the addends that belong there (`expected`) and the addends that are there
  /// (`held`).
  std::vector<Addend> expected, held;
  ProofSetting setting;
  Diagnostic diagnostic;
};

/// Holds what is true of a plan in which no proof found anything.
struct ProofFacts {
  bool bounded = false;  ///< only some of the orders in which blocks compete were executed
  uint32_t launches = 0;
  /// Launches may follow each other if they use this many copies of scratch in turns. Fewer are not enough.
  uint32_t scratch_copies = 0;
  bool entry_guarded = false;   ///< nobody accesses a rank's memory before its launch begins
  bool exit_quiescent = false;  ///< nobody accesses it after the launch ends
  /// Lists outputs whose last bits may differ, such as "output[0:1] of rank 1 is added up in another order
  /// than output[0:1] of rank 0". If it is empty, ranks that hold the same value hold the same bits.
  std::vector<std::string> rounding;
  /// Says in which order the inputs of ranks are added up to an element, and where it is rounded. "0 + 1 + 2
  /// + 3", with "+ ... +" for ranks in between, is rounded once. "(0 + 1) + (2 + 3)" is also rounded after
  /// each bracket. Plans with the same order compute the same bits. (It treats a + b as b + a, so for f32 and
  /// f64 it does not say which of two NaNs results.) It is empty when nothing is added up.
  std::string order;
  /// Says which outputs do not have `order`, or that this is not known. An example is "output[1:2] of rank 0
  /// is 1 + 2 + 0, but output[0:1] of rank 0 is 0 + 1 + 2". It is empty when all outputs have `order`.
  std::string other_order;
};

struct Proof {
  /// These are all findings of one proof, the first that found something. Before findings of races come
  /// those of values that are wrong however the accesses are ordered.
  std::vector<Finding> findings;
  ProofFacts facts;

  Diagnostics diagnostics() const;
};

/// Runs the proofs on a plan.
/// \param plan  without findings of check()
/// \param allow  proofs to leave out, or `all_proofs`
/// \param facts  whether to find the facts, which takes about as long again
Proof prove_plan(const Plan& plan, const std::vector<std::string>& allow = {}, bool facts = false);

/// Runs those proofs again that made diagnostics, and returns the same findings in the same order, with their
/// events.
/// \param diagnostics  may include those of checks, which are ignored
std::vector<Finding> prove_again(const Plan& plan, const Diagnostics& diagnostics);

/// Returns whether a check's name, as in a diagnostic, is that of a proof.
bool is_proof(std::string_view name);

/// Finds operations that repeat the one before them in their thread block. They write the same value to the
/// same bytes. That is superfluous, and formally a race, but harmless. These are warnings, because the proofs
/// accept such operations.
/// \param plan  without findings of check()
Diagnostics find_repeats(const Plan& plan);

/// Returns what the proof of replay finds when all launches use one copy of scratch, packets included. Some
/// executors keep a second copy only for plans that ask for it, so they run other plans in this way. Returns
/// nothing if the proof also finds something with the plan's own number of copies.
/// \param plan  without findings of check()
std::vector<Finding> prove_one_bank(const Plan& plan);

/// Returns whether any proof remains when those in `allow` are left out.
bool wants_proofs(const std::vector<std::string>& allow);

/// Throws if a list leaves out proofs, because a certificate covers all of them.
/// \throws std::invalid_argument if the list names a proof
void require_all_proofs(const std::vector<std::string>& allow);

/// Returns a hash of everything that a run depends on. It is the same in every process. Authors' lines and
/// unknown keys do not count.
uint64_t content_hash(const Plan&);

/// Returns the certificate of a plan that was proved. It is the JSON text of Extension::verified.
std::string certificate(const Plan&, const ProofFacts&);

/// Returns why a plan's certificate is not valid; empty if it is valid. If the plan was read for one rank,
/// only the part that was read is compared.
std::string refute_certificate(const Plan&);

/// Returns ProofFacts::order of a plan. It comes from the certificate if that is valid. Otherwise the whole
/// plan is checked and proved.
/// \returns nothing if elements are added up in different orders, if the order is unknown, as with host
/// schedules, or if there are findings
/// \throws std::invalid_argument if the plan was loaded for one rank and has no certificate that says it
std::optional<std::string> reduction_order(const Plan&);

/// Returns whether each element is added up in the order of the ranks and rounded once, "0 + 1 + 2", or
/// nothing is added up. Then its bits depend only on the addends, not on its position, the size of the
/// message, or the plan. Throws as reduction_order() does.
bool in_rank_order(const Plan&);

/// Returns whether switch channels combine the data of ranks. If GPUs do that by multicast (switch_channels),
/// no plan knows the order in which they add.
bool combines_on_switch(const Plan&);

}  // namespace chorale
