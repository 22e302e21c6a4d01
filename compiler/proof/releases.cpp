// This file finds out which operation releases which, from the counters, barriers and packets of an
// execution. The order in which the execution runs different blocks means nothing. In all executions, the
// n-th take of a counter comes after its n-th post, unless blocks compete.

#include "chorale/releases.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/plan/roles.hpp"
#include "compiler/proof/execution/symbolic_executor.hpp"

namespace chorale {
namespace proof {
namespace {

constexpr uint32_t waiting_roles =
    await_roles | Shape::bit(Role::Acquire) | Shape::bit(Role::Arrive) | Shape::bit(Role::PacketRead);

class Releases : public Observer {
 public:
  Releases(const SymbolicExecutor& executor, AwaitedByOp& out)
      : executor_(executor),
        out_(out),
        posts_(executor.counters().size()),
        rounds_(executor.barriers().size()) {
    if (executor.memory().any_packets()) writers_.resize(executor.memory().cells());
    for (const Chain& chain : executor.chains())
      turns_.emplace_back(executor.plan().gpus[chain.rank].threadblocks[chain.block].ops.size());
  }

  void move(uint32_t chain, const SymbolicStep& step, std::span<const Touch> touches) override {
    for (const Touch& touch : touches) {
      if (!touch.access->packets) continue;
      for (uint32_t cell = touch.cell; cell < touch.cell + touch.cells; ++cell) {
        if (touch.access->write) {
          writers_[cell] = here(chain);
        } else if (step.kind == SymbolicStep::Kind::move) {
          add(awaited(chain), writers_[cell]);
        }
      }
    }
  }

  void post(uint32_t chain, const SymbolicStep&, uint32_t counter) override {
    posts_[counter].push_back(here(chain));
  }

  void take(uint32_t chain, const SymbolicStep&, uint32_t counter, uint64_t first, uint64_t n) override {
    const Counter& of = executor_.counters()[counter];
    Awaited& awaited = this->awaited(chain);
    for (uint64_t post = first; post < first + n; ++post) add(awaited, posts_[counter][post]);
    // A count that is there from the beginning is nobody's post.
    if (n == 0 && of.takes > of.initial) awaited.known = false;
    if (of.competes()) competing_.push_back({chain, executor_.chains()[chain].op});
  }

  void arrive(uint32_t chain, uint32_t barrier) override {
    const Barrier& of = executor_.barriers()[barrier];
    const size_t round = of.arrived / of.participants;
    if (rounds_[barrier].size() <= round) rounds_[barrier].resize(round + 1);
    rounds_[barrier][round].push_back(here(chain));
  }

  void leave(uint32_t chain, uint32_t barrier) override {
    const Barrier& of = executor_.barriers()[barrier];
    Awaited& awaited = this->awaited(chain);
    for (const OpPlace& place : rounds_[barrier][executor_.chains()[chain].goal / of.participants - 1])
      add(awaited, place);
    if (of.members.size() != of.participants) awaited.known = false;
  }

  /// Marks operations of competing blocks as unknown, because another run may choose another block to go
  /// first.
  void doubt_competing() {
    for (const auto& [chain, op] : competing_) of(chain, op).known = false;
  }

 private:
  /// Returns the position of a block as others name it. In a pipeline with more turns to come, it is the
  /// pipeline itself.
  OpPlace here(uint32_t at) const {
    const Chain& chain = executor_.chains()[at];
    const bool earlier = chain.body_end != 0 && chain.turns_left > 1;
    return {chain.rank, chain.block, earlier ? chain.body - 1 : chain.op};
  }

  Awaited& of(uint32_t at, uint32_t op) const {
    const Chain& chain = executor_.chains()[at];
    return out_[chain.rank][chain.block][op];
  }

  /// Returns the entry of the block's current operation, in this turn.
  Awaited& awaited(uint32_t at) {
    const Chain& chain = executor_.chains()[at];
    Awaited& awaited = of(at, chain.op);
    uint64_t& turn = turns_[at][chain.op];
    if (turn != chain.turn.first) awaited = {};
    turn = chain.turn.first;
    return awaited;
  }

  /// Adds a place unless it was the last one added. Packets come cell by cell, with those of one operation
  /// next to each other.
  static void add(Awaited& awaited, const OpPlace& place) {
    if (awaited.releases.empty() || awaited.releases.back() != place) awaited.releases.push_back(place);
  }

  const SymbolicExecutor& executor_;
  AwaitedByOp& out_;
  std::vector<std::vector<OpPlace>> posts_;                // by counter
  std::vector<std::vector<std::vector<OpPlace>>> rounds_;  // by barrier
  std::vector<OpPlace> writers_;                           // by cell of packets
  std::vector<std::vector<uint64_t>> turns_;               // by chain and operation: the start of its turn
  std::vector<std::pair<uint32_t, uint32_t>> competing_;   // chains and operations
};

/// Sorts the releases and removes duplicates.
void settle(Awaited& awaited) {
  std::vector<OpPlace>& list = awaited.releases;
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

/// Executes one launch. Returns false if it did not end.
bool run_once(const Plan& plan, uint64_t chunk_bytes, AwaitedByOp& out) {
  const std::optional<Message> message = message_of(plan, chunk_bytes);
  if (!message) return false;
  const Memory memory(plan, *message, false);
  if (!memory.fits()) return false;
  SymbolicExecutor executor(plan, memory);
  Releases releases(executor, out);
  Choices choices;
  const bool ended = executor.run(1, choices, releases);
  if (!choices.made().empty()) releases.doubt_competing();
  return ended;
}

}  // namespace
}  // namespace proof

AwaitedByOp list_awaited(const Plan& plan, uint64_t chunk_bytes) {
  AwaitedByOp out;
  for (const Gpu& gpu : plan.gpus) {
    auto& blocks = out.emplace_back();
    for (const ThreadBlock& block : gpu.threadblocks) blocks.emplace_back(block.ops.size());
  }
  const bool ended = proof::run_once(plan, chunk_bytes, out);
  for (size_t rank = 0; rank < out.size(); ++rank) {
    for (size_t block = 0; block < out[rank].size(); ++block) {
      for (size_t op = 0; op < out[rank][block].size(); ++op) {
        Awaited& awaited = out[rank][block][op];
        proof::settle(awaited);
        const Opcode code = plan.gpus[rank].threadblocks[block].ops[op].code;
        if (!ended && shape(code).has_any(proof::waiting_roles)) awaited.known = false;
      }
    }
  }
  return out;
}

}  // namespace chorale
