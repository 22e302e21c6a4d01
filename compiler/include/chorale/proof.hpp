#pragma once
/// \file
/// Proves finished plans. The proofs say what they found, in words and as events, and what is true of a plan
/// in which they found nothing. docs/proof.md says what is claimed.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/diagnostic.hpp"

namespace chorale {

/// These are the names of the proofs, see passes.def.
inline constexpr std::string_view proof_names[] = {
#define CHORALE_PROOF(name, summary) #name,
#include "chorale/passes.def"
};

/// Stands for every proof in a list of proofs to leave out.
inline constexpr std::string_view all_proofs = "proofs";

/// Describes something that a part of a plan does in an execution.
struct ProofEvent {
  enum class Who : uint8_t { block, proxy, application };
  Who who = Who::block;
  OpPlace at;                ///< application: only the rank counts
  uint32_t launch = 0;       ///< number among the launches that were executed one after the other
  uint32_t segment = 0;      ///< number of synchronisations of its block or proxy before it
  bool accesses = false;     ///< it reads or overwrites chunks [begin, end) of a buffer
  bool writes = false;       ///< it overwrites them
  bool packets = false;      ///< they are packets
  uint32_t buffer_rank = 0;  ///< rank of that buffer
  BufferKind buffer = BufferKind::input;
  uint64_t begin = 0, end = 0;
};

/// Names the execution in which something was found. It is enough to play it again, see
/// compiler/proof/symbolic_executor.hpp.
struct ProofSetting {
  uint32_t message = 0;           ///< position in list_messages()
  bool one_storage = false;       ///< input and output are one memory
  uint32_t launches = 1;          ///< number of launches, one after the other
  std::vector<uint32_t> choices;  ///< the choices of the one to go on, when thread blocks competed
};

/// Holds a part of a value, in words, and how often it is in there.
struct Addend {
  std::string words;
  uint64_t times = 1;  ///< at least so often, if it is the largest number that there is
};

/// Holds one finding of a proof.
struct Finding {
  enum class Kind : uint8_t {
    undecided,   ///< nothing is proved, because no one execution speaks for all
    cycle,       ///< waits that wait for each other: each, then the answer to it, which comes too late
    unanswered,  ///< a wait that nothing answers: one event
    race,        ///< two accesses without order: the earlier one in this execution first
    value,       ///< an output that does not hold what it should: its last write, if any
  };
  std::string_view proof;  ///< one of proof_names
  Kind kind = Kind::undecided;
  std::vector<ProofEvent> events;
  /// For a race: so many segments of the first event's block or proxy are over, as far as the second one
  /// knows.
  uint32_t known = 0;
  /// For a value: `expected` are the addends that belong there, `held` those that are there.
  std::vector<Addend> expected, held;
  ProofSetting setting;
  Diagnostic diagnostic;
};

/// Says what is true of a plan in which no proof found anything.
struct ProofFacts {
  bool bounded = false;  ///< only some of the orders in which blocks compete were executed
  uint32_t launches = 0;
  /// Launches may follow each other with so many copies of scratch, taken in turns, and not with fewer.
  uint32_t scratch_copies = 0;
  bool entry_guarded = false;   ///< nobody touches a rank's memory before the rank's launch has begun
  bool exit_quiescent = false;  ///< nobody touches it after it has ended
  /// Names outputs whose last bits may differ: "output[0:1] of rank 1 is added up in another order than
  /// output[0:1] of rank 0". When it is empty, ranks that hold the same have the same bits.
  std::vector<std::string> rounding;
  /// Says in which order, and rounded where, the inputs of ranks become each element that is added up: "0 + 1
  /// + 2 + 3", with "+ ... +" for ranks in between, is rounded once; "(0 + 1) + (2 + 3)" each bracket by
  /// itself. Plans of one order compute the same bits. (It tells a + b as b + a, so it does not say which of
  /// two NaNs f32 and f64 give.) It is empty when nothing is added up.
  std::string order;
  /// Says that not all of the outputs have `order`, or that this is not known: "output[1:2] of rank 0 is 1 +
  /// 2 + 0, but output[0:1] of rank 0 is 0 + 1 + 2". It is empty when all of them have it.
  std::string other_order;
};

struct Proof {
  std::vector<Finding> findings;  ///< all of one proof: the first that found something
  ProofFacts facts;

  Diagnostics diagnostics() const;
};

/// Runs the proofs on a plan.
/// \param plan  in which check() finds nothing
/// \param allow  proofs to leave out, or `all_proofs`
/// \param facts  whether to find the facts, which takes about as long again
Proof prove_plan(const Plan& plan, const std::vector<std::string>& allow = {}, bool facts = false);

/// Finds the operations that repeat the one before them in their thread block. They write the same value to
/// the same bytes, which is superfluous, and a race only in name. These are warnings: the proofs accept them.
/// \param plan  in which check() finds nothing
Diagnostics find_repeats(const Plan& plan);

/// Returns the findings of the proof of replay when scratch, also that of packets, is one memory for all
/// launches. Executors that have a second one only for plans that ask for it run plans so. Returns nothing if
/// the proof finds something with the plan's own scratch, too.
/// \param plan  in which check() finds nothing
std::vector<Finding> prove_one_bank(const Plan& plan);

/// Returns whether a list of proofs to leave out leaves any.
bool wants_proofs(const std::vector<std::string>& allow);

/// Refuses a list that leaves out proofs, because a certificate is of all of them.
/// \throws std::invalid_argument if the list has a proof
void require_all_proofs(const std::vector<std::string>& allow);

/// Returns a hash of everything that a run depends on. It is the same in every process. Lines and unknown
/// keys do not count.
uint64_t content_hash(const Plan&);

/// Returns the certificate of a plan that was proved: the JSON text of Extension::verified.
std::string certificate(const Plan&, const ProofFacts&);

/// Returns why a plan's certificate does not hold; empty if it does. A plan that was read for one rank alone
/// is compared as far as it was read.
std::string refute_certificate(const Plan&);

/// Returns ProofFacts::order of a plan. It is what the certificate says, if that holds; else all of the plan
/// is checked and proved.
/// \returns nothing if elements are added up in different orders, if that is not known, as of host schedules,
///          or if something is found
/// \throws std::invalid_argument if the plan was loaded for one rank alone and no certificate says it
std::optional<std::string> reduction_order(const Plan&);

/// Returns whether each element is added up in the order of the ranks and rounded once, "0 + 1 + 2", or
/// nothing is added up. Its bits then depend on the addends alone, and not on its place, the message's size
/// or which such plan it is. Throws as reduction_order().
bool in_rank_order(const Plan&);

/// Returns whether switch channels combine what ranks have. When GPUs do that by multicast (switch_channels),
/// they do it in an order that no plan knows.
bool combines_on_switch(const Plan&);

}  // namespace chorale
