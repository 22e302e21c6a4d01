#include "execution.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <utility>

namespace chorale::host {
namespace {

void join(std::vector<uint32_t>& clock, const std::vector<uint32_t>& other) {
  for (size_t k = 0; k < clock.size(); ++k) clock[k] = std::max(clock[k], other[k]);
}

/// Lists the kinds of steps that every rank must reach before one ends, by their list in
/// Execution::together_.
enum : size_t { barriers, launches, kinds_together };
std::optional<size_t> kind_together(const Step& step) {
  if (step.kind == StepKind::barrier) return barriers;
  if (is_launch(step)) return launches;
  return {};
}

}  // namespace

bool is_launch(const Step& step) {
  return step.kind == StepKind::launch ||
         (step.kind == StepKind::sm_copy && step.transfers.at(0).mover == Mover::plan);
}

Execution::Execution(const Concrete& made, Queues queues, uint32_t runs)
    : made_(made), queues_(queues), runs_(runs), streams_(made.streams.size()), posts_(made.flags.size()) {
  plan_order();
  run();
}

/// Finds what each step waits for on its own rank. A step waits for the one before it on its queue. `after`
/// also waits for the last step so far of each of the other streams, or for the mark that it names. Launches
/// wait for each other on all streams, which orders what two launches read and write. An SM copy via `plan`
/// may copy before and after its own launch, and nothing orders those copies.
void Execution::plan_order() {
  states_.resize(made_.ranks);
  waits_.resize(made_.ranks);
  turns_.resize(made_.ranks);
  numbers_.resize(made_.ranks);
  together_.resize(made_.ranks);
  for (uint32_t rank = 0; rank < made_.ranks; ++rank) {
    const size_t count = made_.steps[rank].size() * runs_;
    states_[rank].resize(count);
    waits_[rank].resize(count);
    turns_[rank].resize(count);
    numbers_[rank].resize(count);
    together_[rank].resize(kinds_together);
    std::vector<std::optional<size_t>> last(streams_);
    std::vector<uint32_t> numbers(streams_);
    std::optional<size_t> before, last_launch;
    std::map<uint32_t, size_t> marks;  // by token: the last mark
    for (size_t position = 0; position < count; ++position) {
      const Step& one = step(rank, position);
      const std::optional<size_t> together = kind_together(one);
      if (together) {
        std::vector<size_t>& all = together_[rank][*together];
        if (*together == launches && !all.empty()) turns_[rank][position] = all.back();
        all.push_back(position);
      }
      if (one.kind == StepKind::launch) {
        if (last_launch) waits_[rank][position].push_back(*last_launch);
        last_launch = position;
      }
      if (queues_ == Queues::one_each) {
        if (before) waits_[rank][position].push_back(*before);
      } else {
        if (last[one.stream]) waits_[rank][position].push_back(*last[one.stream]);
        if (one.kind == StepKind::after && one.token) {
          waits_[rank][position].push_back(marks.at(one.token));
        } else {
          for (const uint32_t stream : one.streams)
            if (last[stream]) waits_[rank][position].push_back(*last[stream]);
        }
      }
      if (one.kind == StepKind::mark && one.token) marks[one.token] = position;
      before = last[one.stream] = position;
      numbers_[rank][position] = ++numbers[queues_ == Queues::one_each ? 0 : one.stream];
    }
  }
}

bool Execution::try_begin(uint32_t rank, size_t position) {
  State& one = state(rank, position);
  if (one.begun) return false;
  for (const size_t other : waits_[rank][position])
    if (!states_[rank][other].over) return false;
  if (const auto turn = turns_[rank][position]; turn && !states_[rank][*turn].over) return false;
  one.begun = true;
  one.begins.assign(made_.ranks * streams_, 0);
  for (const size_t other : waits_[rank][position]) join(one.begins, states_[rank][other].ends);
  return true;
}

/// Returns whether the other ends of all transfers have begun. Transfers of 0 bytes order nothing, because
/// not every mover makes their ends wait for each other.
bool Execution::peers_have_begun(uint32_t rank, size_t position, std::vector<uint32_t>& clock) {
  const size_t size = made_.steps[rank].size();
  for (const ConcreteTransfer& transfer : step(rank, position).transfers) {
    const Pair& pair = made_.pairs[transfer.pair];
    const Pair::End& other = transfer.is_send ? pair.recv : pair.send;
    const State& there = states_[other.rank][other.step + position / size * made_.steps[other.rank].size()];
    if (!there.begun) return false;
    if (transfer.box.bytes) join(clock, there.begins);
  }
  return true;
}

bool Execution::all_have_begun(uint32_t rank, size_t position, std::vector<uint32_t>& clock) {
  const std::optional<size_t> kind = kind_together(step(rank, position));
  if (!kind) return true;
  const std::vector<size_t>& mine = together_[rank][*kind];
  const size_t which = size_t(std::lower_bound(mine.begin(), mine.end(), position) - mine.begin());
  for (uint32_t other = 0; other < made_.ranks; ++other) {
    if (which >= together_[other][*kind].size()) return false;
    const State& there = states_[other][together_[other][*kind][which]];
    if (!there.begun) return false;
    // A plan may end on one rank before another rank has begun it, so a launch orders nothing.
    if (*kind == barriers) join(clock, there.begins);
  }
  return true;
}

bool Execution::try_end(uint32_t rank, size_t position) {
  State& one = state(rank, position);
  if (!one.begun || one.over) return false;
  const Step& what = step(rank, position);
  clock_ = one.begins;
  std::vector<uint32_t>& clock = clock_;
  if (!peers_have_begun(rank, position, clock)) return false;
  if (!all_have_begun(rank, position, clock)) return false;
  if (what.kind == StepKind::wait) {
    // The group that it waits for may be on another stream.
    const size_t start = position / made_.steps[rank].size() * made_.steps[rank].size();
    const State& group = states_[rank][start + what.token];
    if (!group.over) return false;
    join(clock, group.ends);
  }
  if (what.kind == StepKind::take) {
    if (posts_[what.flag].empty()) return false;
    join(clock, posts_[what.flag].front());
    posts_[what.flag].pop_front();
  }
  clock[queue(rank, what.stream)] = numbers_[rank][position];
  if (what.kind == StepKind::post) posts_[what.flag].push_back(clock);
  one.ends = clock;
  one.over = true;
  one.number = ++over_;
  return true;
}

void Execution::run() {
  // The steps of a queue begin in order, so only the next step of each queue can begin.
  struct Lined {
    std::vector<size_t> positions;
    size_t over = 0;
  };
  const size_t queues = queues_ == Queues::one_each ? 1 : streams_;
  std::vector<std::vector<Lined>> lined(made_.ranks, std::vector<Lined>(queues));
  for (uint32_t rank = 0; rank < made_.ranks; ++rank)
    for (size_t position = 0; position < states_[rank].size(); ++position)
      lined[rank][queues == 1 ? 0 : step(rank, position).stream].positions.push_back(position);
  using Next = std::pair<size_t, Lined*>;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::vector<Lined>& of_rank : lined) {
      const uint32_t rank = uint32_t(&of_rank - lined.data());
      std::priority_queue<Next, std::vector<Next>, std::greater<>> next;  // in the order of enqueueing
      const auto add = [&](Lined& queue) {
        if (queue.over < queue.positions.size()) next.emplace(queue.positions[queue.over], &queue);
      };
      for (Lined& queue : of_rank) add(queue);
      while (!next.empty()) {
        const auto [position, queue] = next.top();
        next.pop();
        moved |= try_begin(rank, position);
        moved |= try_end(rank, position);
        if (!states_[rank][position].over) continue;
        ++queue->over;
        add(*queue);
      }
    }
  }
  for (uint32_t rank = 0; rank < made_.ranks; ++rank) {
    for (size_t position = 0; position < states_[rank].size(); ++position) {
      const State& one = states_[rank][position];
      const size_t size = made_.steps[rank].size();
      if (one.begun && !one.over)
        blocked_.push_back({rank, uint32_t(position % size), uint32_t(position / size)});
    }
  }
}

uint32_t Execution::number(const Event& of) const {
  return states_[of.rank][of.step + of.run * made_.steps[of.rank].size()].number;
}

bool Execution::before(const Event& first, const Event& second) const {
  const size_t one = first.step + first.run * made_.steps[first.rank].size();
  const size_t other = second.step + second.run * made_.steps[second.rank].size();
  const uint32_t at = queue(first.rank, made_.steps[first.rank][first.step].stream);
  const std::vector<uint32_t>& known = states_[second.rank][other].begins;
  return !known.empty() && known[at] >= numbers_[first.rank][one];
}

}  // namespace chorale::host
