#pragma once
/// \file
/// The proofs check finished plans. They report findings in words and as events, and report facts about a
/// plan without findings. A certificate says that a plan was proved. docs/proof.md says what they claim.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "chorale/finding.hpp"
#include "chorale/quantised.hpp"

namespace chorale {

/// Holds what is true of a plan in which no proof found anything.
struct ProofFacts {
  bool bounded = false;   ///< only some of the orders in which blocks compete were executed
  uint32_t launches = 0;  ///< number of consecutive launches that were executed
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
  /// Says how often an input was encoded on its way to an output at most, see quantised_words() and
  /// error_bound().
  Quantised quantised{};
};

/// Holds what the proofs found.
struct Proof {
  /// Holds all findings of the first proof that found something. If that proof is `races`, findings about
  /// values that are wrong in every order of the accesses come first.
  std::vector<Finding> findings;
  ProofFacts facts;

  Diagnostics diagnostics() const;
};

/// Runs the proofs on a plan.
/// \param plan  a plan without findings of check()
/// \param allow  names of proofs to leave out, or `all_proofs`
/// \param facts  if true, finds all facts, which takes about as long again. If false, only `bounded` and
///   `launches` are valid
Proof prove_plan(const Plan& plan, const std::vector<std::string>& allow = {}, bool facts = false);

/// Runs the proofs, except those named in `allow`. The plan must have no findings of check(). Stops after the
/// first proof with findings and returns all findings of that proof.
Diagnostics prove(const Plan&, const std::vector<std::string>& allow = {});

/// Runs again the proofs that reported `diagnostics`. Returns the same findings in the same order, with their
/// events.
/// \param diagnostics  what prove() or compile() returned for `plan`. Diagnostics of checks are ignored
std::vector<Finding> prove_again(const Plan& plan, const Diagnostics& diagnostics);

/// Returns whether a check's name, as in a diagnostic, is that of a proof.
bool is_proof(std::string_view name);

/// Returns what the proof `replay` finds if all launches share one copy of scratch, packets included. Some
/// executors run all plans in this way, except those that ask for a second copy. Returns no findings if the
/// proof also finds something with the plan's own number of copies.
/// \param plan  a plan without findings of check()
std::vector<Finding> prove_one_bank(const Plan& plan);

/// Returns whether any proof remains when those in `allow` are left out.
bool wants_proofs(const std::vector<std::string>& allow);

/// Throws if a list leaves out proofs, because a certificate covers all of them.
/// \throws std::invalid_argument if the list names a proof
void require_all_proofs(const std::vector<std::string>& allow);

/// Returns the certificate of a plan that was proved. It is the JSON text of Extension::verified.
std::string certificate(const Plan&, const ProofFacts&);

/// Returns why a plan's certificate is not valid; empty if it is valid. If the plan was read for one rank,
/// only the part that was read is compared.
std::string refute_certificate(const Plan&);

}  // namespace chorale
