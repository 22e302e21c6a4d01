#include "reasons.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "trace.hpp"

namespace chorale::mutation {
namespace {

std::string op_text(const Plan& plan, const OpPlace& at) {
  const ThreadBlock& block = plan.gpus[at.rank].threadblocks[at.threadblock];
  const std::string_view name = at.op < block.ops.size() ? info(block.ops[at.op].code).name : "the end";
  return fmt::format("{} {}.{}.{}", name, at.rank, at.threadblock, at.op);
}

std::string access_text(const Plan& plan, const Trace& trace, const AccessId& id) {
  const std::string launch = fmt::format("launch {}", id.launch + 1);
  if (id.who == AccessId::Who::application) {
    return fmt::format("the application of rank {} {} before {}", id.rank,
                       id.nth ? "overwrites the input" : "reads the output", launch);
  }
  return op_text(plan, trace.place_of(id)) + (id.who == AccessId::Who::block ? " in " : " by the proxy in ") +
         launch;
}

/// Describes the first block that does something different.
std::string difference(const Plan& original, const Trace& before, const Trace& after) {
  if (before.streams().size() != after.streams().size()) return "there are other thread blocks";
  uint32_t chain = 0;
  for (const Gpu& gpu : original.gpus) {
    for (uint32_t block = 0; block < gpu.threadblocks.size(); ++block, ++chain) {
      if (before.streams()[chain] == after.streams()[chain]) continue;
      return fmt::format("thread block {} of rank {} touches other memory or in another order", block,
                         gpu.id);
    }
  }
  return {};
}

Reason path_reason(const Plan& mutant, const Trace& after, std::vector<Pair> pairs) {
  std::erase_if(pairs, [&](const Pair& pair) { return !after.pairs().count(pair); });  // these are gone
  if (pairs.empty()) return {"nothing", "no two accesses of the same memory are ordered by it"};
  const Pair shown = pairs.front();
  const std::optional<std::vector<OpPlace>> shown_path = after.path(shown);
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
    return std::tie(a.second, a.visible) < std::tie(b.second, b.visible);  // this order makes path() cheaper
  });
  for (const Pair& pair : pairs) {
    if (after.path(pair)) continue;
    return {"unexplained",
            access_text(mutant, after, pair.first) + " before " + access_text(mutant, after, pair.second)};
  }
  std::string text = fmt::format("{} comes before {} all the same", access_text(mutant, after, shown.first),
                                 access_text(mutant, after, shown.second));
  for (size_t at = 0; at < shown_path->size(); ++at) {
    text += (at ? ", " : " by ") + op_text(mutant, (*shown_path)[at]);
  }
  return {"path", text + fmt::format("; and so with all {} such pairs", pairs.size())};
}

}  // namespace

Reason find_reason(const Plan& original, const Plan& mutant, const Mutant& of) {
  const Trace before(original), after(mutant);
  if (!before.ended() || !after.ended()) return {"unexplained", "no execution of it comes to its end"};
  const std::string other = difference(original, before, after);
  if (!other.empty()) return {"values", "every output holds what it should, although " + other};
  std::vector<Pair> pairs;
  if (of.of_operation) pairs = before.pairs_through(of.at);
  for (const Pair& pair : after.pairs()) {
    if (!before.pairs().count(pair)) pairs.push_back(pair);
  }
  return path_reason(mutant, after, std::move(pairs));
}

}  // namespace chorale::mutation
