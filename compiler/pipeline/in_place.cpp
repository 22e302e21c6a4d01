#include "chorale/compile.hpp"
#include "chorale/proof.hpp"
#include "chorale/rewrites.hpp"

namespace chorale {

std::optional<Plan> also_in_place(const Plan& plan) {
  Plan found = plan;
  found.inplace = true;
  pass::dependency_sync(found, {});
  if (!prove_plan(found).findings.empty()) return std::nullopt;
  found.inplace = plan.inplace;
  if (plan.extension.verified.empty()) return found;
  const Proof proof = prove_plan(found, {}, true);
  if (!proof.findings.empty()) return std::nullopt;
  found.extension.verified = certificate(found, proof.facts);
  return found;
}

}  // namespace chorale
