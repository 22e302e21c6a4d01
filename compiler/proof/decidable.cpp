// This file proves `decidable`: the executions that are tried stand for all.

#include "decidable.hpp"

#include <algorithm>
#include <utility>

#include "compiler/plan/report.hpp"
#include "compiler/proof/execution/loop_skew.hpp"

namespace chorale::proof {
namespace {

/// Finds the first operation of a chain with a step that matches, and counts all of them.
template <class Match>
std::pair<OpPlace, uint32_t> find_all(const SymbolicExecutor& executor, uint32_t chain, Match&& match) {
  const Plan& plan = executor.plan();
  const Chain& of = executor.chains()[chain];
  const Gpu& gpu = plan.gpus[of.rank];
  const ThreadBlock& block = gpu.threadblocks[of.block];
  SymbolicSteps steps;
  std::pair<OpPlace, uint32_t> found{{of.rank, of.block, 0}, 0};
  for (uint32_t at = 0; at < block.ops.size(); ++at) {
    list_steps(plan, gpu, block, block.ops[at], steps);
    if (std::any_of(steps.steps.begin(), steps.steps.end(), match) && !found.second++) found.first.op = at;
  }
  return found;
}

/// Reports two thread blocks that compete for a counter.
void tell_rivals(const SymbolicExecutor& executor, Findings& findings, uint32_t counter, bool take,
                 uint32_t one, uint32_t other) {
  std::string what = "a semaphore";
  const auto place_of = [&](uint32_t chain) {
    const uint32_t rank = executor.chains()[chain].rank;
    return find_all(executor, chain, [&](const SymbolicStep& step) {
      const bool takes = step.kind == SymbolicStep::Kind::await || step.kind == SymbolicStep::Kind::acquire;
      const bool posts = step.kind == SymbolicStep::Kind::post || step.kind == SymbolicStep::Kind::release ||
                         (step.kind == SymbolicStep::Kind::push && step.posts);
      if (!(take ? takes : posts) || executor.counter_of(rank, step) != counter) return false;
      if (step.via != ChannelType::none) {
        what = std::string(channel_type_names[size_t(step.via)]) + " channel " + number(step.id) + " of " +
               rank_name(rank);
      } else {
        what = "semaphore " + number(step.id) + " of " + rank_name(rank);
      }
      return true;
    });
  };
  auto [first, firsts] = place_of(one);
  auto [second, seconds] = place_of(other);
  // The finding is about the block with fewer of these operations, which may be in the wrong block.
  if (firsts < seconds) {
    std::swap(first, second);
    std::swap(firsts, seconds);
  }
  const auto block_of = [](const OpPlace& at) { return "thread block " + number(at.threadblock); };
  const auto name_of = [&](const OpPlace& at) {
    return std::string(info(executor.plan().gpus[at.rank].threadblocks[at.threadblock].ops[at.op].code).name);
  };
  if (!findings.news(ProofName::decidable, second, first, {})) return;
  Finding& finding = findings.add(
      ProofName::decidable, Finding::Kind::undecided, second,
      "this " + name_of(second) + " is in " + block_of(second) + ", but " + block_of(first) +
          (take ? " also takes from " : " also adds to ") + what +
          ": which of them comes first depends on their speed",
      "move the " + name_of(second) + " to " + block_of(first) +
          ", or give each block a semaphore or channel of its own; if both blocks are meant to compete, set "
          "bounded_proof: then the proof tries at most " +
          number(max_executions) + " orders, takes as many times as long, and may miss a wrong one");
  finding.diagnostic.notes.push_back({{},
                                      first,
                                      block_of(first) + " has " + count(firsts, "such operation") + ", " +
                                          (firsts > 1 ? "the first one " : "") + "here; " + block_of(second) +
                                          " has " + number(seconds)});
  for (const OpPlace& at : {first, second}) finding.events.emplace_back().at = at;
}

}  // namespace

bool has_fixed_skew(const Plan& plan, Findings& findings) {
  const std::optional<LoopSkew::Mismatch> found = skew_of(plan).mismatch;
  if (!found || !findings.wanted(ProofName::decidable)) return true;
  Finding& finding = findings.add(
      ProofName::decidable, Finding::Kind::undecided, found->takes,
      "this plan cannot be proved: what a turn of this pipeline waits for depends on how many turns there "
      "are, because the posts and the waits are not in corresponding pipelines, equally often per turn",
      "give each pipeline channels, semaphores and barriers of its own");
  finding.diagnostic.notes.push_back({{}, found->posts, "the other end is here"});
  for (const OpPlace& at : {found->posts, found->takes}) finding.events.emplace_back().at = at;
  return false;
}

bool is_decided(const SymbolicExecutor& executor, Findings& findings, bool& bounded) {
  const Plan& plan = executor.plan();
  for (uint32_t at = 0; at < executor.counters().size(); ++at) {
    const Counter& counter = executor.counters()[at];
    if (!counter.competes()) continue;
    bounded = true;
    if (plan.extension.bounded_proof || !findings.wanted(ProofName::decidable)) continue;
    const bool take = counter.takers.size() > 1;
    const std::vector<uint32_t>& rivals = take ? counter.takers : counter.posters;
    tell_rivals(executor, findings, at, take, rivals[0], rivals[1]);
  }
  for (const Barrier& barrier : executor.barriers()) {
    if (!findings.wanted(ProofName::decidable)) break;
    if (barrier.members.size() == barrier.participants) continue;
    const auto is_arrival = [&](const SymbolicStep& step) {
      return step.kind == SymbolicStep::Kind::arrive && step.id == barrier.id;
    };
    const OpPlace at = find_all(executor, barrier.members[0], is_arrival).first;
    findings.add(ProofName::decidable, Finding::Kind::undecided, at,
                 "barrier " + number(barrier.id) + " of " + rank_name(barrier.rank) + " is for " +
                     count(barrier.participants, "thread block") + ", but " +
                     (barrier.members.size() == 1 ? std::string("1 comes")
                                                  : number(barrier.members.size()) + " come") +
                     " to it: which blocks wait for each other depends on their speed",
                 "let exactly as many blocks come to it as it says");
  }
  return !findings.any();
}

}  // namespace chorale::proof
