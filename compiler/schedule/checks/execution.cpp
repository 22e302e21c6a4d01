#include "execution.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <utility>

namespace chorale::schedule {
namespace {

void join(std::span<uint32_t> clock, std::span<const uint32_t> other) {
  for (size_t k = 0; k < clock.size(); ++k) clock[k] = std::max(clock[k], other[k]);
}

/// Lists the kinds of steps that every rank must reach before one ends, by their list in
/// Execution::OfRank::together.
enum : size_t { barriers, launches };
std::optional<size_t> kind_together(const Step& step) {
  if (step.kind == StepKind::barrier) return barriers;
  if (is_launch(step)) return launches;
  return {};
}

}  // namespace

bool is_launch(const Step& step) {
  return step.kind == StepKind::launch ||
         (step.kind == StepKind::exchange && step.transfers.at(0).mover == Mover::plan);
}

Execution::Execution(const Concrete& made, Queues queues, uint32_t runs)
    : made_(made),
      queues_(queues),
      runs_(runs),
      streams_(made.streams.size()),
      ranks_(made.ranks),
      posts_(made.flags.size()),
      clock_(made.ranks * streams_) {
  plan_order();
  run();
}

std::span<const size_t> Execution::waits(uint32_t rank, size_t position) const {
  const OfRank& of = ranks_[rank];
  const size_t begin = position == 0 ? 0 : of.states[position - 1].waits_end;
  return std::span(of.waits).subspan(begin, of.states[position].waits_end - begin);
}

/// Finds what each step waits for on its own rank. A step waits for the one before it on its queue. `after`
/// also waits for the last step so far of each of the other streams, or for the mark that it names. Launches
/// wait for each other on all streams, which orders what two launches read and write. An exchange via `plan`
/// may copy before and after its own launch, and nothing orders those copies.
void Execution::plan_order() {
  for (uint32_t rank = 0; rank < made_.ranks; ++rank) {
    OfRank& of = ranks_[rank];
    const size_t count = made_.steps[rank].size() * runs_;
    of.states.resize(count);
    of.waits.reserve(2 * count);
    of.begins.resize(count * clock_.size());
    of.ends.resize(count * clock_.size());
    std::vector<size_t> last(streams_, none);
    std::vector<uint32_t> numbers(streams_);
    size_t before = none, last_launch = none;
    std::map<uint32_t, size_t> marks;  // by token: the last mark
    const auto wait_for = [&](size_t earlier) {
      if (earlier != none) of.waits.push_back(earlier);
    };
    for (size_t position = 0; position < count; ++position) {
      const Step& one = step(rank, position);
      State& state = of.states[position];
      const std::optional<size_t> together = kind_together(one);
      if (together) {
        std::vector<size_t>& all = of.together[*together];
        if (*together == launches && !all.empty()) state.turn = all.back();
        all.push_back(position);
      }
      if (one.kind == StepKind::launch) {
        wait_for(last_launch);
        last_launch = position;
      }
      if (queues_ == Queues::one_each) {
        wait_for(before);
      } else {
        wait_for(last[one.stream]);
        if (one.kind == StepKind::after && one.token) {
          wait_for(marks.at(one.token));
        } else {
          for (const uint32_t stream : one.streams) wait_for(last[stream]);
        }
      }
      state.waits_end = of.waits.size();
      if (one.kind == StepKind::mark && one.token) marks[one.token] = position;
      before = last[one.stream] = position;
      state.in_queue = ++numbers[queues_ == Queues::one_each ? 0 : one.stream];
    }
  }
}

bool Execution::try_begin(uint32_t rank, size_t position) {
  std::vector<State>& states = ranks_[rank].states;
  State& one = states[position];
  if (one.begun) return false;
  const std::span<const size_t> earlier = waits(rank, position);
  if (!std::all_of(earlier.begin(), earlier.end(), [&](size_t at) { return states[at].over; })) return false;
  if (one.turn != none && !states[one.turn].over) return false;
  one.begun = true;
  for (const size_t at : earlier) join(begins(rank, position), ends(rank, at));
  return true;
}

/// Returns whether the other ends of all transfers have begun. Transfers of 0 bytes order nothing, because
/// not every mover makes their ends wait for each other.
bool Execution::peers_have_begun(uint32_t rank, size_t position) {
  const size_t size = made_.steps[rank].size();
  for (const ConcreteTransfer& transfer : step(rank, position).transfers) {
    const Pair& pair = made_.pairs[transfer.pair];
    const Pair::End& other = transfer.is_send ? pair.recv : pair.send;
    const size_t there = other.step + position / size * made_.steps[other.rank].size();
    if (!ranks_[other.rank].states[there].begun) return false;
    if (transfer.box.bytes) join(clock_, begins(other.rank, there));
  }
  return true;
}

bool Execution::all_have_begun(uint32_t rank, size_t position) {
  const std::optional<size_t> kind = kind_together(step(rank, position));
  if (!kind) return true;
  const std::vector<size_t>& mine = ranks_[rank].together[*kind];
  const size_t which = size_t(std::lower_bound(mine.begin(), mine.end(), position) - mine.begin());
  for (uint32_t other = 0; other < made_.ranks; ++other) {
    const std::vector<size_t>& theirs = ranks_[other].together[*kind];
    if (which >= theirs.size() || !ranks_[other].states[theirs[which]].begun) return false;
    // A plan may end on one rank before another rank has begun it, so a launch orders nothing.
    if (*kind == barriers) join(clock_, begins(other, theirs[which]));
  }
  return true;
}

bool Execution::try_end(uint32_t rank, size_t position) {
  std::vector<State>& states = ranks_[rank].states;
  State& one = states[position];
  if (!one.begun || one.over) return false;
  const Step& what = step(rank, position);
  std::ranges::copy(begins(rank, position), clock_.begin());
  if (!peers_have_begun(rank, position)) return false;
  if (!all_have_begun(rank, position)) return false;
  if (what.kind == StepKind::wait) {
    // The group that it waits for may be on another stream.
    const size_t group = position / made_.steps[rank].size() * made_.steps[rank].size() + what.token;
    if (!states[group].over) return false;
    join(clock_, ends(rank, group));
  }
  if (what.kind == StepKind::take) {
    if (posts_[what.flag].empty()) return false;
    join(clock_, posts_[what.flag].front());
    posts_[what.flag].pop_front();
  }
  clock_[queue(rank, what.stream)] = one.in_queue;
  if (what.kind == StepKind::post) posts_[what.flag].push_back(clock_);
  std::ranges::copy(clock_, ends(rank, position).begin());
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
    for (size_t position = 0; position < ranks_[rank].states.size(); ++position)
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
        if (!ranks_[rank].states[position].over) continue;
        ++queue->over;
        add(*queue);
      }
    }
  }
  for (uint32_t rank = 0; rank < made_.ranks; ++rank) {
    for (size_t position = 0; position < ranks_[rank].states.size(); ++position) {
      const State& one = ranks_[rank].states[position];
      const size_t size = made_.steps[rank].size();
      if (one.begun && !one.over)
        blocked_.push_back({rank, uint32_t(position % size), uint32_t(position / size)});
    }
  }
}

uint32_t Execution::number(const Event& of) const { return ranks_[of.rank].states[position(of)].number; }

bool Execution::before(const Event& first, const Event& second) const {
  const OfRank& here = ranks_[second.rank];
  if (!here.states[position(second)].begun) return false;
  const uint32_t at = queue(first.rank, made_.steps[first.rank][first.step].stream);
  return here.begins[position(second) * clock_.size() + at] >=
         ranks_[first.rank].states[position(first)].in_queue;
}

}  // namespace chorale::schedule
