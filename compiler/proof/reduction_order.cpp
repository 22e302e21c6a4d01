// Which plans compute the same bits.

#include <nlohmann/json.hpp>

#include "chorale/proof.hpp"
#include "value.hpp"

namespace chorale {
namespace {

std::string order_of_ranks(uint32_t ranks) {
  proof::Values values;
  uint32_t sum = values.origin({0, 0});
  for (uint32_t rank = 1; rank < ranks; ++rank)
    sum = values.combine(sum, values.origin({rank, 0}), ReduceOp::sum);
  return values.order_words(sum);
}

}  // namespace

std::optional<std::string> reduction_order(const Plan& plan) {
  if (refute_certificate(plan).empty()) {
    const auto text = nlohmann::json::parse(plan.extension.verified);
    // Older certificates do not say it.
    if (const auto order = text.find("reduction_order"); order != text.end())
      return order->is_string() ? std::optional(order->get<std::string>()) : std::nullopt;
  }
  const Proof proof = prove_plan(plan, {}, true);
  if (!proof.findings.empty() || !proof.facts.other_order.empty()) return {};
  return proof.facts.order;
}

bool in_rank_order(const Plan& plan) {
  const std::optional<std::string> order = reduction_order(plan);
  return order && (order->empty() || *order == order_of_ranks(plan.ranks()));
}

}  // namespace chorale
