#include "default_plans.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "chorale/collective.hpp"

namespace chorale {
namespace {

constexpr uint64_t KiB = 1024, MiB = 1024 * KiB, any = UINT64_MAX;

/// Tells what a rule compares with `most`.
enum class Counted { message, to_all_peers };

/// Marks the program of a rule whose plan without a variant is the safe default of the collective: it accepts
/// every number of ranks and is never far from the fastest.
constexpr bool safe = true;

struct Rule {
  std::string_view collective;
  uint64_t most;
  std::string_view program, variant;  ///< the shipped plan's name is program plus variant; the variant tells
                                      ///< how the plan was made
  Counted counted = Counted::message;
  bool is_safe = false;
};

/// These rules are for GPUs that NVLink switches connect. The first rule of the collective with `most` at or
/// above the message size applies, and the last rule of each collective accepts any size. The limits of plans
/// with packets come from the simulator, and those above from a table that was tuned on four H200s. For other
/// numbers of ranks they follow from the bytes on the links: a one-shot all-reduce sends the message to every
/// peer, and all other plans send an equal share to each. See docs/decisions/0014-defaults-by-size.md.
constexpr Rule gpu_rules[] = {
    {"allreduce", 448 * KiB, "allreduce_one_shot", "_b16", Counted::to_all_peers},
    {"allreduce", 1 * MiB, "allreduce_two_shot", "_b32"},
    {"allreduce", 2 * MiB, "allreduce_all_pairs", "_b16"},
    {"allreduce", 32 * MiB, "allreduce_all_pairs", "_b64", Counted::message, safe},
    {"allreduce", any, "allreduce_ring", "_b64"},
    {"allgather", 1 * MiB, "allgather_packets", "_b16"},
    {"allgather", 2 * MiB, "allgather_direct", "_b16", Counted::message, safe},
    {"allgather", 8 * MiB, "allgather_by_peer", "_b64"},
    {"allgather", 32 * MiB, "allgather_by_peer", "_b128"},
    {"allgather", any, "allgather_ring", "_b64"},
    {"reducescatter", 8 * KiB, "reducescatter_packets", "_b16"},
    {"reducescatter", 2 * MiB, "reducescatter_packets", "_b32"},
    {"reducescatter", any, "reducescatter_direct", "_b64", Counted::message, safe},
    {"alltoall", 1 * MiB, "alltoall_packets", "_b16"},
    {"alltoall", 2 * MiB, "alltoall_direct", "_b16"},
    {"alltoall", 32 * MiB, "alltoall_direct", "_b64", Counted::message, safe},
    {"alltoall", any, "alltoall_in_turns", "_b64"},
    {"broadcast", any, "broadcast_direct", "_b16", Counted::message, safe},
    {"reduce", 16 * KiB, "reduce_packets", "_b4", Counted::to_all_peers},
    {"reduce", 1 * MiB, "reduce_packets", "_b16", Counted::to_all_peers},
    {"reduce", any, "reduce_direct", "_b64", Counted::message, safe},
};

/// These rules go before gpu_rules for two ranks. They are the fastest plans of two H200s.
constexpr Rule rules_of_two_gpus[] = {
    {"allreduce", 8 * KiB, "allreduce_one_shot", "_b4"},
    {"allreduce", 512 * KiB, "allreduce_one_shot", "_b128"},
    {"allreduce", 1 * MiB, "allreduce_two_shot", "_b32"},
    {"allreduce", 2 * MiB, "allreduce_one_shot", "_b128"},
    {"allreduce", 4 * MiB, "allreduce_all_pairs", "_b128"},
    {"allreduce", any, "allreduce_ring", "_b128"},
    {"allgather", 8 * KiB, "allgather_packets", "_b4"},
    {"allgather", 4 * MiB, "allgather_packets", "_b64"},
    {"allgather", 256 * MiB, "allgather_direct", "_b64"},
    {"allgather", any, "allgather_by_port", ""},
    {"reducescatter", 2 * KiB, "reducescatter_packets", ""},
    {"reducescatter", 8 * KiB, "reducescatter_packets", "_b4"},
    {"reducescatter", 4 * MiB, "reducescatter_packets", "_b128"},
    {"reducescatter", any, "reducescatter_direct", "_b128"},
    {"alltoall", 8 * KiB, "alltoall_packets", "_b4"},
    {"alltoall", 4 * MiB, "alltoall_packets", "_b64"},
    {"alltoall", 256 * MiB, "alltoall_direct", "_b64"},
    {"alltoall", any, "alltoall_by_port", ""},
};

/// These rules go before gpu_rules for four ranks. They come from the same sources.
constexpr Rule rules_of_four_gpus[] = {
    {"allreduce", 64 * KiB, "allreduce_one_shot", "_b16"},
    {"allreduce", 2 * MiB, "allreduce_two_shot", "_b128"},
    {"reducescatter", 8 * KiB, "reducescatter_packets", "_b16"},
    {"reducescatter", 4 * MiB, "reducescatter_packets", "_b128"},
};

/// These rules are for plans that add up in the order of the ranks.
constexpr Rule gpu_rules_in_rank_order[] = {
    {"allreduce", 448 * KiB, "allreduce_one_shot", "_b16", Counted::to_all_peers},
    {"allreduce", 1 * MiB, "allreduce_two_shot", "_ordered_b32"},
    {"allreduce", any, "allreduce_staged", "_b64", Counted::message, safe},
    {"reducescatter", 1 * MiB, "reducescatter_packets", "_ordered_b16"},
    {"reducescatter", any, "reducescatter_staged", "_b64", Counted::message, safe},
    {"reduce", 16 * KiB, "reduce_packets", "_ordered_b4", Counted::to_all_peers},
    {"reduce", 1 * MiB, "reduce_packets", "_ordered_b16", Counted::to_all_peers},
    {"reduce", any, "reduce_staged", "_b64", Counted::message, safe},
};

/// Holds a rule for at least this many thread blocks.
struct RuleOfFewBlocks {
  uint32_t blocks;
  Rule rule;
};

/// These rules are for users who limit the thread blocks. They go after the rules above, most of whose plans
/// have more. Those for the most blocks within the limit come first. Their limits in bytes come from the
/// times of plans with 4 and 16 blocks in the run of docs/benchmarks.md on two H200s, and for longer messages
/// and more ranks from the simulator. In that run a block that reduces read only 11 GB/s from a peer, less
/// than the simulator assumes, so rings and staged plans, whose blocks write to peers, go before those that
/// read.
constexpr RuleOfFewBlocks rules_of_few_blocks[] = {
    {64, {"allreduce", 256 * KiB, "allreduce_one_shot", "_b16", Counted::to_all_peers}},
    {64, {"allreduce", 2 * MiB, "allreduce_two_shot", "_b32"}},
    {64, {"allreduce", any, "allreduce_ring", "_b64"}},
    {64, {"allgather", 256 * MiB, "allgather_by_peer", "_b64"}},
    {64, {"allgather", any, "allgather_by_port", "_b24"}},
    {64, {"reducescatter", 4 * MiB, "reducescatter_packets", "_b32"}},
    {64, {"reducescatter", any, "reducescatter_direct", "_b64"}},
    {64, {"alltoall", 256 * MiB, "alltoall_by_peer", "_b64"}},
    {64, {"alltoall", any, "alltoall_by_port", "_b24"}},
    {32, {"allreduce", 256 * KiB, "allreduce_one_shot", "_b16", Counted::to_all_peers}},
    {32, {"allreduce", 2 * MiB, "allreduce_two_shot", "_b32"}},
    {32, {"allgather", 1 * MiB, "allgather_packets", "_b16"}},
    {32, {"allgather", 256 * MiB, "allgather_direct", "_b16"}},
    {32, {"reducescatter", 4 * MiB, "reducescatter_packets", "_b32"}},
    {32, {"alltoall", 1 * MiB, "alltoall_packets", "_b16"}},
    {32, {"alltoall", 256 * MiB, "alltoall_direct", "_b16"}},
    {24, {"allreduce", 256 * KiB, "allreduce_one_shot", "_b16", Counted::to_all_peers}},
    {24, {"allreduce", 2 * MiB, "allreduce_two_shot", "_b16"}},
    {24, {"allreduce", 8 * MiB, "allreduce_all_pairs", "_b24"}},
    {24, {"allreduce", any, "allreduce_ring", "_b24"}},
    {24, {"allgather", 1 * MiB, "allgather_packets", "_b16"}},
    {24, {"allgather", 256 * MiB, "allgather_direct", "_b12"}},
    {24, {"allgather", any, "allgather_by_port", "_b24"}},
    {24, {"reducescatter", 4 * MiB, "reducescatter_packets", "_b16"}},
    {24, {"reducescatter", any, "reducescatter_direct", "_b24"}},
    {24, {"alltoall", 1 * MiB, "alltoall_packets", "_b16"}},
    {24, {"alltoall", 256 * MiB, "alltoall_direct", "_b12"}},
    {24, {"alltoall", any, "alltoall_by_port", "_b24"}},
    {16, {"allreduce", 256 * KiB, "allreduce_one_shot", "_b16", Counted::to_all_peers}},
    {16, {"allreduce", 2 * MiB, "allreduce_two_shot", "_b16"}},
    {16, {"allreduce", 8 * MiB, "allreduce_all_pairs", "_b16"}},
    {16, {"allreduce", any, "allreduce_ring", "_b16"}},
    {16, {"allgather", 1 * MiB, "allgather_packets", "_b16"}},
    {16, {"allgather", 256 * MiB, "allgather_direct", "_b8"}},
    {16, {"reducescatter", 4 * MiB, "reducescatter_packets", "_b16"}},
    {16, {"reducescatter", any, "reducescatter_staged", "_b16"}},
    {16, {"alltoall", 1 * MiB, "alltoall_packets", "_b16"}},
    {16, {"alltoall", 256 * MiB, "alltoall_direct", "_b8"}},
    {16, {"reduce", 1 * MiB, "reduce_packets", "_b16", Counted::to_all_peers}},
    {16, {"reduce", any, "reduce_direct", ""}},
    {8, {"allreduce", 128 * KiB, "allreduce_one_shot", "_b4", Counted::to_all_peers}},
    {8, {"allreduce", 512 * KiB, "allreduce_two_shot", ""}},
    {8, {"allreduce", any, "allreduce_ring", "_b8"}},
    {8, {"allgather", 256 * KiB, "allgather_packets", "_b4"}},
    {8, {"allgather", 8 * MiB, "allgather_direct", ""}},
    {8, {"allgather", any, "allgather_by_port", "_b8"}},
    {8, {"reducescatter", 1 * MiB, "reducescatter_packets", "_b4"}},
    {8, {"reducescatter", any, "reducescatter_staged", "_b8"}},
    {8, {"alltoall", 256 * KiB, "alltoall_packets", "_b4"}},
    {8, {"alltoall", 8 * MiB, "alltoall_direct", ""}},
    {8, {"alltoall", any, "alltoall_by_port", "_b8"}},
    {8, {"broadcast", any, "broadcast_direct", ""}},
    {4, {"allreduce", 128 * KiB, "allreduce_one_shot", "_b4", Counted::to_all_peers}},
    {4, {"allreduce", 512 * KiB, "allreduce_two_shot", ""}},
    {4, {"allreduce", any, "allreduce_ring", ""}},
    {4, {"allgather", any, "allgather_packets", "_b4"}},
    {4, {"reducescatter", 1 * MiB, "reducescatter_packets", "_b4"}},
    {4, {"reducescatter", any, "reducescatter_staged", ""}},
    {4, {"alltoall", any, "alltoall_packets", "_b4"}},
    {4, {"broadcast", any, "broadcast_ring", ""}},
    {4, {"reduce", 256 * KiB, "reduce_packets", "_b4", Counted::to_all_peers}},
    {4, {"reduce", any, "reduce_direct", ""}},
    {1, {"allreduce", any, "allreduce_one_shot", ""}},
    {1, {"allgather", any, "allgather_packets", ""}},
    {1, {"reducescatter", any, "reducescatter_packets", ""}},
    {1, {"alltoall", any, "alltoall_packets", ""}},
    {1, {"broadcast", any, "broadcast_ring", "_b1"}},
    {1, {"reduce", any, "reduce_packets", ""}},
};

/// These rules are the same for plans that add up in the order of the ranks.
constexpr RuleOfFewBlocks rules_of_few_blocks_in_rank_order[] = {
    {16, {"allreduce", 448 * KiB, "allreduce_one_shot", "_b16", Counted::to_all_peers}},
    {16, {"allreduce", 1 * MiB, "allreduce_two_shot", "_ordered_b16"}},
    {16, {"allreduce", any, "allreduce_staged", "_b16"}},
    {16, {"reducescatter", 1 * MiB, "reducescatter_packets", "_ordered_b16"}},
    {16, {"reducescatter", any, "reducescatter_staged", "_b16"}},
    {16, {"reduce", 1 * MiB, "reduce_packets", "_ordered_b16", Counted::to_all_peers}},
    {16, {"reduce", any, "reduce_staged", ""}},
    {4, {"allreduce", 128 * KiB, "allreduce_one_shot", "_b4", Counted::to_all_peers}},
    {4, {"allreduce", any, "allreduce_staged", ""}},
    {4, {"reducescatter", 256 * KiB, "reducescatter_packets", "_ordered_b4"}},
    {4, {"reducescatter", any, "reducescatter_staged", ""}},
    {4, {"reduce", 256 * KiB, "reduce_packets", "_ordered_b4", Counted::to_all_peers}},
    {4, {"reduce", any, "reduce_staged", ""}},
    {1, {"allreduce", any, "allreduce_one_shot", ""}},
    {1, {"reducescatter", any, "reducescatter_packets", "_ordered_b1"}},
    {1, {"reduce", any, "reduce_packets", "_ordered_b1"}},
};

/// Returns whether each collective of the rules has one safe default.
template <size_t N>
constexpr bool has_safe_defaults(const Rule (&rules)[N]) {
  return std::all_of(rules, rules + N, [&](const Rule& one) {
    return std::count_if(rules, rules + N, [&](const Rule& other) {
             return other.is_safe && other.collective == one.collective;
           }) == 1;
  });
}
static_assert(has_safe_defaults(gpu_rules) && has_safe_defaults(gpu_rules_in_rank_order));

/// Adds the plans that the rules of a collective name.
/// \param plain  also add each plan without its variant, which has another number of thread blocks
void add_rules(std::span<const Rule> rules, const std::string& collective, int ranks, bool plain,
               DefaultPlan::For whom, std::vector<DefaultPlan>& plans) {
  uint64_t least = 0;
  for (const Rule& rule : rules) {
    if (rule.collective != collective) continue;
    const uint64_t peers = rule.counted == Counted::to_all_peers ? uint64_t(std::max(1, ranks - 1)) : 1;
    const uint64_t most = rule.most == any ? any : rule.most / peers;
    plans.push_back({rule.program, rule.variant, least, most, whom});
    if (plain && !rule.variant.empty()) plans.push_back({rule.program, "", least, most, whom});
    if (most != any) least = std::max(least, most + 1);
  }
}

/// Adds the plans of rules for few blocks. A limit below their blocks leaves them in the list, so that the
/// error of a limit that is too low names the plan with the fewest blocks.
void add_rules_of_few_blocks(std::span<const RuleOfFewBlocks> rules, const std::string& collective, int ranks,
                             std::vector<DefaultPlan>& plans) {
  for (size_t begin = 0, end = 0; begin < rules.size(); begin = end) {
    std::vector<Rule> alike;
    for (; end < rules.size() && rules[end].blocks == rules[begin].blocks; ++end)
      alike.push_back(rules[end].rule);
    add_rules(alike, collective, ranks, false, DefaultPlan::For::this_machine, plans);
  }
}

/// Returns "allreduce, allgather and broadcast": the collectives that have rules.
std::string listed_collectives() {
  std::vector<std::string_view> words;
  for (const Rule& rule : gpu_rules)
    if (words.empty() || words.back() != rule.collective) words.push_back(rule.collective);
  const std::string_view last = words.back();
  words.pop_back();
  return fmt::format("{} and {}", fmt::join(words, ", "), last);
}

/// Returns the safe default among the rules of a collective.
template <size_t N>
DefaultPlan safe_default(const Rule (&rules)[N], std::string_view collective) {
  const auto found = std::find_if(std::begin(rules), std::end(rules), [&](const Rule& rule) {
    return rule.is_safe && rule.collective == collective;
  });
  DefaultPlan plan{found->program, ""};
  plan.needs_file = false;
  return plan;
}

}  // namespace

std::vector<DefaultPlan> default_plans(const TunedFor& machine, const std::string& collective) {
  // All plans of two ranks add in the same order.
  const bool rank_order = machine.rank_order && collective_reduces(collective) && machine.ranks > 2;
  const auto whom = [&](bool ordered) {
    if (machine.backend != "cuda") return DefaultPlan::For::gpus;
    return ordered == rank_order ? DefaultPlan::For::this_machine : DefaultPlan::For::any_order;
  };
  std::vector<DefaultPlan> plans;
  const bool limited = machine.max_blocks.value_or(0) != 0;
  if (rank_order) add_rules(gpu_rules_in_rank_order, collective, machine.ranks, false, whom(true), plans);
  const auto add = [&](std::span<const Rule> rules) {
    add_rules(rules, collective, machine.ranks, !rank_order && !limited, whom(false), plans);
  };
  const auto add_few_blocks = [&] {
    if (!limited) return;
    const std::span<const RuleOfFewBlocks> in_order(rules_of_few_blocks_in_rank_order);
    add_rules_of_few_blocks(rank_order ? in_order : rules_of_few_blocks, collective, machine.ranks, plans);
  };
  if (machine.ranks == 2) add(rules_of_two_gpus);
  if (machine.ranks == 4) add(rules_of_four_gpus);
  // The times of plans with few blocks are those of two GPUs, whose fastest plans differ from gpu_rules.
  const bool few_blocks_first = machine.ranks == 2 && !plans.empty();
  if (few_blocks_first) add_few_blocks();
  add(gpu_rules);
  if (plans.empty()) return plans;
  if (!few_blocks_first) add_few_blocks();
  // It is the only one where the others are not for this machine.
  plans.insert(
      machine.backend == "cuda" ? plans.end() : plans.begin(),
      rank_order ? safe_default(gpu_rules_in_rank_order, collective) : safe_default(gpu_rules, collective));
  return plans;
}

void throw_no_default(const std::string& collective) {
  throw UsageError(
      fmt::format("there are no default plans for '{}', only for {}: execute a plan that you choose",
                  collective, listed_collectives()));
}

}  // namespace chorale
