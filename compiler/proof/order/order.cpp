#include "order.hpp"

#include <algorithm>

#include "compiler/plan/resolve.hpp"

namespace chorale::proof {

uint32_t Agent::launch_of(uint32_t at) const {
  const auto after = std::upper_bound(launches.begin(), launches.end(), at);
  return after == launches.begin() ? 0 : uint32_t(after - launches.begin() - 1);
}

Order::Order(const SymbolicExecutor& executor)
    : executor_(executor),
      any_switched_(executor.any_switched()),
      any_relaxed_(executor.any_relaxed_posts()) {
  add_agents();
  room_ = std::make_unique<Clock::Room>(uint32_t(agents_.size()));
  uint32_t writer = 0;
  for (Agent& agent : agents_) {
    agent.visible = agent.over = agent.pending = agent.reached = agent.reaching = Clock(*room_);
    agent.visible.name(++writer);
    agent.over.name(++writer);
  }
  starts_.assign(executor.plan().ranks(), Clock(*room_));
  tokens_.resize(executor.counters().size());
  rounds_.resize(executor.barriers().size());
  round_of_.resize(executor.chains().size());
}

void Order::add_agents() {
  const Plan& plan = executor_.plan();
  const std::vector<Chain>& chains = executor_.chains();
  // Blocks of the same position communicate most, so their counts share leaves.
  std::vector<uint32_t> by_position(chains.size());
  for (uint32_t chain = 0; chain < chains.size(); ++chain) by_position[chain] = chain;
  std::stable_sort(by_position.begin(), by_position.end(),
                   [&](uint32_t a, uint32_t b) { return chains[a].block < chains[b].block; });
  blocks_.resize(chains.size());
  for (const uint32_t chain : by_position) {
    blocks_[chain] = uint32_t(agents_.size());
    agents_.emplace_back().chain = chain;
  }
  applications_ = uint32_t(agents_.size());
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    Agent& agent = agents_.emplace_back();
    agent.kind = Agent::Kind::application;
    agent.rank = rank;
  }
  for (uint32_t chain = 0; chain < chains.size() && executor_.any_proxies(); ++chain) {
    const ThreadBlock& block = plan.gpus[chains[chain].rank].threadblocks[chains[chain].block];
    for (const Op& op : block.ops) {
      if (!has_proxy(op.via)) continue;
      for (const uint32_t local : block.op_ids(op)) {
        const uint32_t channel = uint32_t(channel_id(block, op.via, local));
        if (!proxies_.try_emplace({chain, channel}, uint32_t(agents_.size())).second) continue;
        for (const Agent::Kind kind : {Agent::Kind::proxy_reads, Agent::Kind::proxy_writes}) {
          Agent& agent = agents_.emplace_back();
          agent.kind = kind;
          agent.chain = chain;
        }
      }
    }
  }
}

void Order::join(Agent& agent, const Clock& visible, const Clock& over) {
  // For most agents, everything that has ended is also visible. Then both clocks are one.
  const bool one = agent.visible.same(agent.over) && visible.same(over);
  agent.visible.join(visible);
  if (one)
    agent.over = agent.visible;
  else
    agent.over.join(over);
}

/// Adds an agent's own past to its clocks.
void Order::publish(Agent& agent, uint32_t id) {
  const bool one = agent.visible.same(agent.over);
  agent.visible.raise(id, agent.segment);
  if (one)
    agent.over = agent.visible;
  else
    agent.over.raise(id, agent.segment);
}

void Order::begin(uint32_t rank, uint32_t) {
  Agent& owner = agents_[application(rank)];
  publish(owner, application(rank));
  starts_[rank] = owner.visible;
  const Gpu& gpu = executor_.plan().gpus[rank];
  for (uint32_t position = 0; position < gpu.threadblocks.size(); ++position) {
    Agent& agent = block(executor_.chain_of(rank, position));
    agent.visible = owner.visible;
    agent.over = owner.over;
    if (any_switched_) agent.reached = owner.visible;
    agent.launches.push_back(agent.segment);
  }
  for (auto& [key, reads] : proxies_) {
    if (executor_.chains()[key.first].rank != rank) continue;
    for (const uint32_t id : {reads, reads + 1}) agents_[id].launches.push_back(agents_[id].segment);
  }
}

void Order::end(uint32_t rank, uint32_t) {
  Agent& owner = agents_[application(rank)];
  const Gpu& gpu = executor_.plan().gpus[rank];
  for (uint32_t position = 0; position < gpu.threadblocks.size(); ++position) {
    const uint32_t chain = executor_.chain_of(rank, position);
    sync(chain);
    publish(block(chain), block_id(chain));
    join(owner, block(chain).visible, block(chain).over);
  }
  if (any_switched_) owner.reached = owner.visible;
  // A launch ends when its proxies have read everything that they were given.
  for (const auto& [key, reads] : proxies_) {
    if (executor_.chains()[key.first].rank != rank) continue;
    owner.visible.raise(reads, agents_[reads].segment);
    owner.over.raise(reads, agents_[reads].segment);
  }
}

void Order::sync(uint32_t chain) {
  Agent& agent = block(chain);
  ++agent.segment;
  agent.over.join(agent.pending);
  agent.pending = Clock(*room_);
  agent.released = agent.releasing;
  if (any_switched_) agent.reached.join(agent.reaching);
}

void Order::post(uint32_t chain, const SymbolicStep& step, uint32_t counter) {
  const uint32_t rank = executor_.chains()[chain].rank;
  if (step.kind == SymbolicStep::Kind::push) {
    const auto [reads, writes] = hand_over(chain, step);
    tokens_[counter].list.push_back(
        {agents_[writes].visible, agents_[writes].over, start_of(rank), agents_[writes].visible});
    return;
  }
  Agent& agent = block(chain);
  publish(agent, block_id(chain));
  const bool to_device = step.kind == SymbolicStep::Kind::release;
  if (!step.relaxed) agent.releasing = agent.segment;
  if (!step.relaxed && !to_device && any_switched_) agent.reaching = agent.visible;
  const bool publishes = !step.relaxed && !overtaken(chain, step);
  const Clock& visible = publishes ? agent.visible : starts_[rank];
  tokens_[counter].list.push_back({visible, agent.over, start_of(rank),
                                   !any_switched_ ? Clock()
                                   : to_device    ? agent.reached
                                                  : visible});
}

/// Returns whether a later post of the same counter may overtake this one, because nothing synchronises the
/// threads between the two. Then a block that waits for one post may have got the other.
bool Order::overtaken(uint32_t chain, const SymbolicStep& post) {
  if (!any_relaxed_ || post.kind != SymbolicStep::Kind::post) return false;
  const Chain& of = executor_.chains()[chain];
  const Gpu& gpu = executor_.plan().gpus[of.rank];
  const ThreadBlock& block = gpu.threadblocks[of.block];
  const uint32_t counter = executor_.counter_of(of.rank, post);
  const auto known = overtaken_.try_emplace({chain, of.op, counter}, false);
  bool& found = known.first->second;
  if (!known.second) return found;
  SymbolicSteps steps;
  const auto look = [&](size_t at, size_t end) {  // true: the answer is known
    for (; at < end; ++at) {
      list_steps(executor_.plan(), gpu, block, block.ops[at], steps);
      for (const SymbolicStep& step : steps.steps) {
        if (step.kind == SymbolicStep::Kind::sync) return true;
        if (step.kind != SymbolicStep::Kind::post || executor_.counter_of(of.rank, step) != counter) continue;
        found = true;
        return true;
      }
    }
    return false;
  };
  // The search covers the rest of the turn, then the next turn, then what follows the pipeline.
  size_t first = 0, end = 0;
  for (size_t at = 0; at < block.ops.size(); ++at) {
    if (block.ops[at].body && at < of.op && of.op <= at + block.ops[at].body) {
      first = at + 1;
      end = first + block.ops[at].body;
    }
  }
  if (end && look(of.op + 1, end)) return found;
  if (end) look(first, of.op);
  if (!found) look(end ? end : of.op + 1, block.ops.size());
  return found;
}

void Order::take(uint32_t chain, const SymbolicStep& step, uint32_t counter, uint64_t first, uint64_t n) {
  Agent& agent = block(chain);
  Tokens& tokens = tokens_[counter];
  for (uint64_t at = first; at < first + n; ++at) {
    const Token& token = tokens.list[at - tokens.first];
    join(agent, step.relaxed ? token.start : token.visible, token.over);
    if (any_switched_) agent.reached.join(step.relaxed ? token.start : token.reached);
  }
  if (!n || executor_.counters()[counter].competes()) return;
  tokens.list[tokens.taken++] = {};
  if (tokens.taken < tokens.list.size()) return;
  tokens.first += tokens.taken;
  tokens.taken = 0;
  tokens.list.clear();
}

std::pair<uint32_t, uint32_t> Order::hand_over(uint32_t chain, const SymbolicStep& push) {
  const uint32_t reads = proxies_.at({chain, push.id});
  Agent& from = block(chain);
  publish(from, block_id(chain));
  for (const uint32_t id : {reads, reads + 1}) {
    join(agents_[id], from.visible, from.over);
    if (any_switched_) agents_[id].reached.join(from.visible);
  }
  return {reads, reads + 1};
}

void Order::complete(uint32_t reads, uint32_t writes) {
  ++agents_[reads].segment;
  ++agents_[writes].segment;
  for (const uint32_t of : {reads, writes}) {
    for (const uint32_t id : {reads, writes}) {
      agents_[of].visible.raise(id, agents_[id].segment);
      agents_[of].over.raise(id, agents_[id].segment);
    }
  }
}

void Order::drain(uint32_t chain, const SymbolicStep& step) {
  const auto found = proxies_.find({chain, step.id});
  if (found == proxies_.end()) return;
  const uint32_t reads = found->second;
  block(chain).visible.raise(reads, agents_[reads].segment);
  block(chain).over.raise(reads, agents_[reads].segment);
}

void Order::arrive(uint32_t chain, uint32_t barrier) {
  const Barrier& of = executor_.barriers()[barrier];
  const uint64_t round = of.arrived / of.participants;
  std::vector<Token>& rounds = rounds_[barrier];
  if (rounds.size() == round) {
    // A block that arrives later has seen everything that came before, in this round or in an earlier one.
    rounds.push_back(round ? rounds[round - 1]
                           : Token{Clock(*room_), Clock(*room_), Clock(*room_), Clock(*room_)});
  }
  Agent& agent = block(chain);
  publish(agent, block_id(chain));
  agent.releasing = agent.segment;
  rounds[round].visible.join(agent.visible);
  if (any_switched_) rounds[round].reached.join(agent.reached);
  rounds[round].over.join(agent.over);
  round_of_[chain] = round;
}

void Order::leave(uint32_t chain, uint32_t barrier) {
  const Token& round = rounds_[barrier][round_of_[chain]];
  join(block(chain), round.visible, round.over);
  if (any_switched_) block(chain).reached.join(round.reached);
}

Clock Order::told_by_packet(uint32_t id) {
  publish(agents_[id], id);
  return agents_[id].over;
}

}  // namespace chorale::proof
