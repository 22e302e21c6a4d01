#include "symbolic_executor.hpp"

#include <algorithm>
#include <random>

#include "compiler/plan/progress.hpp"
#include "compiler/plan/resolve.hpp"

namespace chorale::proof {
namespace {

using Kind = SymbolicStep::Kind;
using State = Chain::State;

void add_once(std::vector<uint32_t>& list, uint32_t item) {
  // Chains are visited in order, so an item can only equal the last one.
  if (list.empty() || list.back() != item) list.push_back(item);
}

/// Progress is told after this many operations.
constexpr uint64_t told_every = 1 << 12;

bool posts(const SymbolicStep& step) {
  return step.kind == Kind::post || step.kind == Kind::release || (step.kind == Kind::push && step.posts);
}

}  // namespace

uint32_t Choices::choose(uint32_t options) {
  if (at_ == made_.size()) made_.push_back({at_ < wanted_.size() ? wanted_[at_] % options : 0, options});
  return made_[at_++].chosen;
}

std::vector<uint32_t> Choices::made() const {
  if (made_.empty()) return wanted_;
  std::vector<uint32_t> chosen;
  for (const Choice& choice : made_) chosen.push_back(choice.chosen);
  return chosen;
}

bool Choices::next() {
  at_ = 0;
  while (!made_.empty() && ++made_.back().chosen == made_.back().options) made_.pop_back();
  return !made_.empty();
}

void Choices::draw(uint32_t seed) {
  constexpr size_t most = 4096;
  std::mt19937 random(seed);
  wanted_.resize(most);
  for (uint32_t& choice : wanted_) choice = uint32_t(random());
  made_.clear();
  at_ = 0;
}

SymbolicExecutor::SymbolicExecutor(const Plan& plan, const Memory& memory)
    : plan_(plan), memory_(memory), ends_(list_channel_ends(plan)) {
  uint32_t counters = 0;
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    const Gpu& gpu = plan.gpus[rank];
    for (size_t type = 0; type < std::size(signalled_types); ++type) {
      first_await_[type].push_back(counters);
      counters += uint32_t(ends_[rank].peers[type].size());
    }
    first_semaphore_.push_back(counters);
    counters += uint32_t(gpu.semaphores.size());
    first_chain_.push_back(uint32_t(chains_.size()));
    for (uint32_t block = 0; block < gpu.threadblocks.size(); ++block) {
      Chain& chain = chains_.emplace_back();
      chain.rank = rank;
      chain.block = block;
    }
  }
  counters_.resize(counters);
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    const std::vector<int64_t>& initial = plan.gpus[rank].semaphores;
    for (size_t id = 0; id < initial.size(); ++id)
      counters_[first_semaphore_[rank] + id].initial = uint64_t(std::max<int64_t>(initial[id], 0));
  }
  find_counters();
}

uint32_t SymbolicExecutor::counter_of(uint32_t rank, const SymbolicStep& step) const {
  if (step.kind == Kind::acquire || step.kind == Kind::release) return first_semaphore_[rank] + step.id;
  const size_t type = signalled_position(step.via);
  if (step.kind == Kind::await) return first_await_[type][rank] + step.id;
  const uint32_t mate = ends_[rank].mates[type][step.id];
  return mate == ChannelEnds::none ? none : first_await_[type][ends_[rank].peers[type][step.id]] + mate;
}

uint32_t SymbolicExecutor::barrier_of(uint32_t rank, uint32_t id) const { return barrier_at_.at({rank, id}); }

/// Finds the chains that post to and take from each counter, and those that arrive at each barrier.
void SymbolicExecutor::find_counters() {
  written_.assign(memory_.any_packets() ? memory_.cells() : 0, 0);
  SymbolicSteps steps;
  for (uint32_t at = 0; at < chains_.size(); ++at) {
    const uint32_t rank = chains_[at].rank;
    const Gpu& gpu = plan_.gpus[rank];
    const ThreadBlock& block = gpu.threadblocks[chains_[at].block];
    for (const Op& op : block.ops) {
      note_kind(op);
      if (!op.ids) continue;
      list_steps(plan_, gpu, block, op, steps);
      for (const SymbolicStep& step : steps.steps) {
        if (posts(step)) {
          const uint32_t counter = counter_of(rank, step);
          if (counter != none) add_once(counters_[counter].posters, at);
        } else if (step.kind == Kind::await || step.kind == Kind::acquire) {
          add_once(counters_[counter_of(rank, step)].takers, at);
        } else if (step.kind == Kind::arrive) {
          const auto [found, added] = barrier_at_.try_emplace({rank, step.id}, uint32_t(barriers_.size()));
          if (added) {
            Barrier& barrier = barriers_.emplace_back();
            barrier.rank = rank;
            barrier.id = step.id;
            barrier.participants = step.participants;
          }
          add_once(barriers_[found->second].members, at);
        }
      }
    }
  }
}

/// Notes what else the proofs need to know of the operations, because one pass over a large plan takes less
/// time than several.
void SymbolicExecutor::note_kind(const Op& op) {
  any_switched_ |= is_switched(op.via);
  any_proxies_ |= has_proxy(op.via);
  any_relaxed_posts_ |= shape(op.code).has(Role::PostRelaxed);
  any_relaxed_waits_ |= shape(op.code).has(Role::AwaitRelaxed);
  operations_ += 1 + (op.body ? (memory_.message().turns(op) - 1) * op.body : 0);
}

void SymbolicExecutor::begin_launch(uint32_t rank) {
  const Gpu& gpu = plan_.gpus[rank];
  left_[rank] = uint32_t(gpu.threadblocks.size());
  observer_->begin(rank, gpu.threadblocks.empty() ? 0 : chains_[first_chain_[rank]].launch);
  for (uint32_t block = 0; block < gpu.threadblocks.size(); ++block) {
    Chain& chain = chains_[first_chain_[rank] + block];
    chain.op = chain.step = chain.body_end = 0;
    chain.turn = {};
    chain.listed = false;
    chain.state = State::ready;
    ready_.push_back(first_chain_[rank] + block);
  }
}

bool SymbolicExecutor::run(uint32_t launches, Choices& choices, Observer& observer) {
  observer_ = &observer;
  launches_ = launches;
  to_do_ = operations_ * launches;
  done_ = 0;
  ready_.clear();
  readers_.clear();
  std::fill(written_.begin(), written_.end(), 0);
  for (Counter& counter : counters_) {
    counter.posts = counter.takes = 0;
    counter.waiting.clear();
  }
  for (Barrier& barrier : barriers_) {
    barrier.arrived = 0;
    barrier.waiting.clear();
  }
  for (Chain& chain : chains_) {
    chain.launch = 0;
    chain.arrived = false;
  }
  left_.assign(plan_.ranks(), 0);
  for (uint32_t rank = 0; rank < plan_.ranks(); ++rank) begin_launch(rank);
  do {
    while (!ready_.empty()) {
      const uint32_t chain = ready_.front();
      ready_.pop_front();
      go_on(chain);
    }
  } while (settle(choices));
  return std::all_of(chains_.begin(), chains_.end(),
                     [](const Chain& chain) { return chain.state == State::ended; });
}

/// Lets one competing chain proceed when no chain can proceed without it.
bool SymbolicExecutor::settle(Choices& choices) {
  std::vector<uint32_t> options;
  for (const Counter& counter : counters_) {
    if (counter.competes() && counter.available())
      options.insert(options.end(), counter.waiting.begin(), counter.waiting.end());
  }
  if (options.empty()) return false;
  std::sort(options.begin(), options.end());
  favoured_ = options[options.size() == 1 ? 0 : choices.choose(uint32_t(options.size()))];
  std::erase(counters_[chains_[favoured_].waits_for].waiting, favoured_);
  chains_[favoured_].state = State::ready;
  ready_.push_back(favoured_);
  return true;
}

void SymbolicExecutor::wake(std::vector<uint32_t>& waiting) {
  for (const uint32_t chain : waiting) {
    chains_[chain].state = State::ready;
    ready_.push_back(chain);
  }
  waiting.clear();
}

void SymbolicExecutor::park(uint32_t at, Chain::State state, uint32_t on, std::vector<uint32_t>& waiting) {
  chains_[at].state = state;
  chains_[at].waits_for = on;
  waiting.push_back(at);
}

void SymbolicExecutor::go_on(uint32_t at) {
  Chain& chain = chains_[at];
  const Gpu& gpu = plan_.gpus[chain.rank];
  const ThreadBlock& block = gpu.threadblocks[chain.block];
  for (;; advance(at)) {
    if (chain.op >= block.ops.size()) {
      chain.state = State::ended;
      ++chain.launch;
      if (--left_[chain.rank]) return;
      observer_->end(chain.rank, chain.launch - 1);
      if (chain.launch < launches_) begin_launch(chain.rank);
      return;
    }
    if (!chain.listed) {
      list_steps(plan_, gpu, block, block.ops[chain.op], chain.steps);
      chain.listed = true;
      chain.step = 0;
    }
    while (chain.step < chain.steps.steps.size()) {
      if (!do_step(at, chain.steps.steps[chain.step])) return;
      ++chain.step;
    }
    chain.listed = false;
    if (++done_ % told_every == 0) tell_progress(std::min(1.0, double(done_) / double(to_do_)));
  }
}

/// Advances to the next operation. In a pipeline, that may be the first one of the body again.
void SymbolicExecutor::advance(uint32_t at) {
  Chain& chain = chains_[at];
  const ThreadBlock& block = plan_.gpus[chain.rank].threadblocks[chain.block];
  const Op& op = block.ops[chain.op];
  const Message& message = memory_.message();
  if (op.code == Opcode::pipeline) {
    chain.turns_left = op.body ? message.turns(op) : 0;
    chain.body = chain.op + 1;
    chain.body_end = chain.body + op.body;
    chain.op = chain.turns_left ? chain.body : chain.body_end;
    if (chain.turns_left)
      chain.turn = {0, message.turn(op)};
    else
      chain.body_end = 0;
    return;
  }
  ++chain.op;
  if (!chain.body_end || chain.op != chain.body_end) return;
  if (--chain.turns_left) {
    chain.turn.first += chain.turn.atoms;
    chain.op = chain.body;
  } else {
    chain.turn = {};
    chain.body_end = 0;
  }
}

bool SymbolicExecutor::do_step(uint32_t at, const SymbolicStep& step) {
  switch (step.kind) {
    case Kind::sync:
      observer_->sync(at);
      return true;
    case Kind::move:
      return move(at, step);
    case Kind::post:
    case Kind::release:
      post(at, step);
      return true;
    case Kind::push:
      if (step.sources + step.dests) move(at, step);
      if (step.posts) post(at, step);
      return true;
    case Kind::await:
    case Kind::acquire:
      return take(at, step);
    case Kind::drain:
      observer_->drain(at, step);
      return true;
    case Kind::arrive:
      return arrive(at, step);
  }
  return true;
}

void SymbolicExecutor::post(uint32_t at, const SymbolicStep& step) {
  const uint32_t counter = counter_of(chains_[at].rank, step);
  if (counter == none) return;
  Counter& of = counters_[counter];
  observer_->post(at, step, counter);
  ++of.posts;
  // Competing chains proceed only when no other chain can.
  if (!of.competes() && of.available()) wake(of.waiting);
}

bool SymbolicExecutor::take(uint32_t at, const SymbolicStep& step) {
  const uint32_t counter = counter_of(chains_[at].rank, step);
  Counter& of = counters_[counter];
  const bool competes = of.competes();
  if (!of.available() || (competes && favoured_ != at)) {
    park(at, State::counter, counter, of.waiting);
    return false;
  }
  favoured_ = none;
  const uint64_t take = of.takes++;
  // The take needs this many posts. Their posters are known if one chain makes all posts, or if there were no
  // other posts.
  const uint64_t needed = take + 1 > of.initial ? take + 1 - of.initial : 0;
  const uint64_t first = !competes && needed ? needed - 1 : 0;
  observer_->take(at, step, counter, first, !competes || of.posts == needed ? needed - first : 0);
  return true;
}

bool SymbolicExecutor::arrive(uint32_t at, const SymbolicStep& step) {
  Chain& chain = chains_[at];
  const uint32_t barrier = barrier_of(chain.rank, step.id);
  Barrier& of = barriers_[barrier];
  if (!chain.arrived) {
    observer_->arrive(at, barrier);
    chain.goal = (of.arrived++ / of.participants + 1) * of.participants;
    chain.arrived = true;
    if (of.arrived == chain.goal) wake(of.waiting);
  }
  if (of.arrived < chain.goal) {
    park(at, State::barrier, barrier, of.waiting);
    return false;
  }
  chain.arrived = false;
  observer_->leave(at, barrier);
  return true;
}

/// Returns whether a step copies chunks onto themselves, as an all-gather in place does with its own part.
/// The executor does nothing then.
bool copies_onto_itself(const SymbolicStep& step, std::span<const Touch> touches) {
  return step.kind == Kind::move && !step.combines && step.sources == 1 && step.dests == 1 &&
         touches[0].range == touches[1].range && !touches[0].access->packets &&
         touches[0].access->codec == touches[1].access->codec && !touches[0].access->switched &&
         !touches[1].access->switched;
}

bool SymbolicExecutor::move(uint32_t at, const SymbolicStep& step) {
  Chain& chain = chains_[at];
  const Op& op = plan_.gpus[chain.rank].threadblocks[chain.block].ops[chain.op];
  touches_.clear();
  for (uint32_t k = 0; k < step.sources + step.dests; ++k) {
    const Access& access = chain.steps.accesses[step.first + k];
    const Range range = memory_.range(access, op, chain.turn);
    const uint32_t cells = memory_.count(range);
    touches_.push_back({&access, range, cells ? memory_.cell(range, chain.launch) : 0, cells});
  }
  if (step.kind == Kind::move) {
    for (const Touch& touch : touches_) {
      if (!touch.access->packets || touch.access->write) continue;
      for (uint32_t cell = touch.cell; cell < touch.cell + touch.cells; ++cell) {
        if (written_[cell] == chain.launch + 1) continue;
        park(at, State::packets, cell, readers_[cell]);
        return false;
      }
    }
  }
  if (copies_onto_itself(step, touches_)) return true;
  observer_->move(at, step, touches_);
  for (const Touch& touch : touches_) {
    if (!touch.access->packets || !touch.access->write) continue;
    for (uint32_t cell = touch.cell; cell < touch.cell + touch.cells; ++cell) {
      written_[cell] = chain.launch + 1;
      const auto found = readers_.find(cell);
      if (found == readers_.end()) continue;
      std::vector<uint32_t> waiting = std::move(found->second);
      readers_.erase(found);
      wake(waiting);
    }
  }
  return true;
}

}  // namespace chorale::proof
