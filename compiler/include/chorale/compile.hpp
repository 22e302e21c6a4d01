#pragma once
/// \file
/// The compiler checks, rewrites and proves plans. This header includes what programs call with compile():
/// checks, proofs, and render() for what they find.

#include <optional>

#include "chorale/checks.hpp"
#include "chorale/compile_options.hpp"
#include "chorale/diagnostic.hpp"
#include "chorale/plan.hpp"
#include "chorale/proof.hpp"
#include "chorale/renderer.hpp"
#include "chorale/target_checks.hpp"

namespace chorale {

/// Runs the checks, then the rewrites, then the checks again, and at the end the proofs and the checks of the
/// target. Repeats the checks after every rewrite that changed something. For plans with very many
/// operations, repeats them only after the last rewrite.
///
/// The findings of proofs about a program with several instances are those of one instance, if it has them.
/// They name thread blocks and chunks as the program does, and `plan` is then the plan of that instance.
/// \returns the findings; empty if the plan is ready to run
/// \throws std::invalid_argument if the target or the policy does not exist, if `allow` has an unknown name,
///   or if two options exclude each other
Diagnostics compile(Plan&, const CompileOptions& = {});

/// Returns whether findings of compile() are about the plan of one instance, although the program has
/// several.
bool is_of_one_instance(const Diagnostics&);

/// Returns a plan that computes the same, and is also right when input and output of a rank are one memory.
/// It adds synchronisations of threads where they are needed for that. Returns nothing if the plan is wrong
/// in place even with them. A plan with a certificate gets a new one. The call takes as long as the proofs.
///
/// \param plan  a plan without findings of check() and prove()
std::optional<Plan> also_in_place(const Plan& plan);

}  // namespace chorale
