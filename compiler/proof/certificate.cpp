// This file writes certificates of proofs, and checks the certificate in a plan.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "chorale/proof.hpp"
#include "compiler/documents/content_hash.hpp"

namespace chorale {
namespace {

/// Identifies the version of the proofs. Raise it when a proof finds something new. Older certificates are
/// then refused.
constexpr int checker = 4;

/// Lists the numbers of the assumptions in docs/proof.md.
constexpr const char* assumptions[] = {"A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8"};

std::string text_of(uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace

void require_all_proofs(const std::vector<std::string>& allow) {
  for (const std::string& name : allow) {
    if (name != all_proofs &&
        std::find(std::begin(proof_names), std::end(proof_names), name) == std::end(proof_names))
      continue;
    throw std::invalid_argument("a certificate is of all proofs, but '" + name + "' is left out");
  }
}

std::string certificate(const Plan& plan, const ProofFacts& facts) {
  nlohmann::ordered_json text;
  text["verdict"] = facts.bounded ? "bounded" : "proved";
  text["checker"] = checker;
  text["proofs"] = proof_names;
  text["launches"] = facts.launches;
  text["scratch_copies"] = facts.scratch_copies;
  text["entry_guarded"] = facts.entry_guarded;
  text["exit_quiescent"] = facts.exit_quiescent;
  text["same_rounding"] = facts.rounding.empty();
  if (facts.other_order.empty())
    text["reduction_order"] = facts.order;
  else
    text["reduction_order"] = nullptr;
  if (!plan.extension.codecs.empty()) {
    text["quantised"] = quantised_words(facts.quantised);
    text["error_bound"] = error_bound(facts.quantised);
  }
  text["assumptions"] = assumptions;
  text["hash"] = text_of(top_hash(plan));
  for (const Gpu& gpu : plan.gpus) text["rank_hashes"].push_back(text_of(rank_hash(gpu)));
  return text.dump();
}

std::string refute_certificate(const Plan& plan) {
  if (plan.extension.verified.empty()) return "there is none";
  const auto text = nlohmann::json::parse(plan.extension.verified, nullptr, false);
  const auto is = [](const nlohmann::json& in, const auto& key, const nlohmann::json& wanted) {
    const auto found = in.find(key);
    return found != in.end() && *found == wanted;
  };
  if (!text.is_object() || !text.contains("hash")) return "it has no hash of the plan";
  if (!is(text, "checker", checker)) {
    const auto found = text.find("checker");
    return fmt::format("it is of version {} of the proofs, but this is version {}",
                       found == text.end() ? "null" : found->dump(), checker);
  }
  const auto ranks = text.find("rank_hashes");
  if (ranks == text.end() || !ranks->is_array() || ranks->size() != plan.ranks())
    return "it is for other ranks";
  if (!is(text, "hash", text_of(top_hash(plan)))) return "the plan was changed after it was proved";
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    if (plan.only_rank && *plan.only_rank != rank) continue;
    if ((*ranks)[rank] != text_of(rank_hash(plan.gpus[rank])))
      return fmt::format("rank {} was changed after the plan was proved", rank);
  }
  return {};
}

}  // namespace chorale
