#pragma once
/// \file
/// Proofs of a finished plan: what they found, in words and as events, and what is true of a plan in which
/// they found nothing. docs/proof.md says what is claimed.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/diagnostic.hpp"

namespace chorale {

/// The names of the proofs, see passes.def.
inline constexpr std::string_view proof_names[] = {
#define CHORALE_PROOF(name, summary) #name,
#include "chorale/passes.def"
};

/// In a list of proofs to leave out: every one.
inline constexpr std::string_view all_proofs = "proofs";

/// Something that a part of a plan does in an execution.
struct ProofEvent {
  enum class Who : uint8_t { block, proxy, application };
  Who who = Who::block;
  OpPlace at;                ///< application: only the rank counts
  uint32_t launch = 0;       ///< of those that were executed one after the other
  uint32_t segment = 0;      ///< of its block or proxy: so many synchronisations before it
  bool accesses = false;     ///< it reads or overwrites chunks [begin, end) of a buffer
  bool writes = false;       ///< it overwrites them
  bool packets = false;      ///< they are packets
  uint32_t buffer_rank = 0;  ///< whose buffer
  BufferKind buffer = BufferKind::input;
  uint64_t begin = 0, end = 0;
};

/// The execution in which something was found: enough to play it again, see compiler/proof/player.hpp.
struct ProofSetting {
  uint32_t message = 0;           ///< position in list_messages()
  bool one_storage = false;       ///< input and output are one memory
  uint32_t launches = 1;          ///< one after the other
  std::vector<uint32_t> choices;  ///< who went on where thread blocks competed
};

/// A part of a value, in words, and how often it is in there.
struct Addend {
  std::string words;
  uint64_t times = 1;  ///< at least so often, if it is the largest number that there is
};

/// What a proof found.
struct Finding {
  enum class Kind : uint8_t {
    undecided,   ///< nothing is proved, because no one execution speaks for all
    cycle,       ///< waits that wait for each other: each, and then what would answer it and comes too late
    unanswered,  ///< a wait that nothing answers: one event
    race,        ///< two accesses without order: the earlier one in this execution first
    value,       ///< an output that does not hold what it should: who wrote it last, if anybody
  };
  std::string_view proof;  ///< one of proof_names
  Kind kind = Kind::undecided;
  std::vector<ProofEvent> events;
  /// Race: so many segments of the first event's block or proxy are over, as far as the second one knows.
  uint32_t known = 0;
  /// Value: the addends that belong there, and those that are there.
  std::vector<Addend> expected, held;
  ProofSetting setting;
  Diagnostic diagnostic;
};

/// What is true of a plan in which no proof found anything.
struct ProofFacts {
  bool bounded = false;  ///< of the orders in which blocks compete, only some were executed
  uint32_t launches = 0;
  /// The least number of copies of scratch, taken in turns, with which launches may follow each other.
  uint32_t scratch_copies = 0;
  bool entry_guarded = false;   ///< nobody touches a rank's memory before the rank's launch has begun
  bool exit_quiescent = false;  ///< nobody touches it after it has ended
  /// "output[0:1] of rank 1 is added up in another order than output[0:1] of rank 0": whose last bits may
  /// differ. Empty: the same bits on all ranks that hold the same.
  std::vector<std::string> rounding;
  /// In which order, and rounded where, the inputs of ranks become each element that is added up: "0 + 1 + 2
  /// + 3", with "+ ... +" for ranks in between, is rounded once; "(0 + 1) + (2 + 3)" each bracket by itself.
  /// Plans of one order compute the same bits. (a + b is told as b + a, so it is not said which of two NaNs
  /// f32 and f64 give, or which of -0 and +0 min and max do.) Empty: nothing is added up.
  std::string order;
  /// "output[1:2] of rank 0 is 1 + 2 + 0, but output[0:1] of rank 0 is 0 + 1 + 2": not all of the outputs
  /// have `order`, or that is not known. Empty: all of them have it.
  std::string other_order;
};

struct Proof {
  std::vector<Finding> findings;  ///< all of one proof: the first that found something
  ProofFacts facts;

  Diagnostics diagnostics() const;
};

/// \param plan  in which check() finds nothing
/// \param allow  proofs to leave out, or `all_proofs`
/// \param facts  whether those are wanted, which takes about as long again
Proof prove_plan(const Plan& plan, const std::vector<std::string>& allow = {}, bool facts = false);

/// Finds the operations that repeat the one before them in their thread block. They write the same value to
/// the same bytes, which is superfluous, and a race only in name. These are warnings: the proofs accept them.
/// \param plan  in which check() finds nothing
Diagnostics find_repeats(const Plan& plan);

/// What the proof of replay finds where scratch, also that of packets, is one memory for all launches, as in
/// executors that have a second one only for plans that ask for it; nothing if it finds something anyway.
/// \param plan  in which check() finds nothing
std::vector<Finding> prove_one_bank(const Plan& plan);

/// Whether a list of proofs to leave out leaves any.
bool wants_proofs(const std::vector<std::string>& allow);

/// \throws std::invalid_argument if a list of proofs to leave out has one: a certificate is of all of them
void require_all_proofs(const std::vector<std::string>& allow);

/// Of everything that a run depends on: the same in every process. Lines and unknown keys do not count.
uint64_t content_hash(const Plan&);

/// The certificate of a plan that was proved: the JSON text of Extension::verified.
std::string certificate(const Plan&, const ProofFacts&);

/// Why a plan's certificate does not hold; empty: it does. A plan that was read for one rank alone is
/// compared as far as it was read.
std::string refute_certificate(const Plan&);

/// ProofFacts::order of a plan: as its certificate says, if that holds; else it is checked and proved, all of
/// it.
/// \returns nothing if elements are added up in different orders, if that is not known, as of host schedules,
///          or if something is found
/// \throws std::invalid_argument if it was loaded for one rank alone and no certificate says it
std::optional<std::string> reduction_order(const Plan&);

/// Whether each element is added up in the order of the ranks and rounded once, "0 + 1 + 2", or nothing is
/// added up: then its bits depend on the addends alone, and not on its place, the message's size or which
/// such plan it is. Throws as reduction_order().
bool in_rank_order(const Plan&);

/// Whether switch channels combine what ranks have. Where GPUs do that by multicast (switch_channels), they
/// do it in an order that no plan knows.
bool combines_on_switch(const Plan&);

}  // namespace chorale
