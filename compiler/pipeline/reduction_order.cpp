// This file finds out which plans compute the same bits.

#include "chorale/reduction_order.hpp"

#include <nlohmann/json.hpp>

#include "chorale/checks.hpp"
#include "chorale/proof.hpp"
#include "compiler/plan/resolve.hpp"
#include "compiler/proof/values/value.hpp"

namespace chorale {
namespace {

std::string order_of_ranks(uint32_t ranks) {
  proof::Values values;
  uint32_t sum = values.origin({0, 0});
  for (uint32_t rank = 1; rank < ranks; ++rank)
    sum = values.combine(sum, values.origin({rank, 0}), ReduceOp::sum);
  return values.order_words(sum);
}

bool adds_up(const Plan& plan) {
  bool any = false;
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, const OpPlace&) {
    any |= shape(op.code).has(Role::Reduce);
  });
  return any;
}

}  // namespace

std::optional<std::string> reduction_order(const Plan& plan) {
  // The values of a host schedule are not proved.
  if (plan.extension.schedule) return {};
  if (refute_certificate(plan).empty()) {
    const auto text = nlohmann::json::parse(plan.extension.verified);
    // Older certificates lack this key.
    if (const auto order = text.find("reduction_order"); order != text.end())
      return order->is_string() ? std::optional(order->get<std::string>()) : std::nullopt;
  }
  // Proofs rely on what checks establish.
  if (!check(plan).empty()) return {};
  const Proof proof = prove_plan(plan, {}, true);
  if (!proof.findings.empty() || !proof.facts.other_order.empty()) return {};
  return proof.facts.order;
}

bool combines_on_switch(const Plan& plan) {
  bool any = false;
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, const OpPlace&) {
    any |= shape(op.code).has(Role::SwitchRead);
  });
  return any;
}

bool in_rank_order(const Plan& plan) {
  if (!plan.extension.schedule && !plan.only_rank && !adds_up(plan)) return true;
  const std::optional<std::string> order = reduction_order(plan);
  return order && (order->empty() || *order == order_of_ranks(plan.ranks()));
}

}  // namespace chorale
