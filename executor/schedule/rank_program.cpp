#include "rank_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "functions.hpp"

namespace chorale::schedule_run {

using schedule::Box;
using schedule::Concrete;
using schedule::Step;
using schedule::StepKind;

namespace {

/// Refuses flags that are not binary, because none of the backends implements them.
void refuse_counters(const schedule::Schedule& schedule, const Concrete& made) {
  for (const schedule::ConcreteFlag& flag : made.flags) {
    if (flag.kind == schedule::Flag::Kind::binary) continue;
    const SourceLine line = schedule.line_of(flag.at);
    throw UsageError(fmt::format(
        "flag '{}'{} is a counter: the value that is waited for would be the same in every run of a graph; "
        "make it binary",
        flag.name, line.line ? fmt::format(" ({}:{})", line.file, line.line) : ""));
  }
}

/// Turns barriers into flags, in two rounds in which each rank posts to all ranks. After the first round a
/// peer may not have cleared this rank's post yet, and the post of the next run would be lost. A rank that
/// has passed the second round knows that all ranks have cleared the first.
class Barriers {
 public:
  explicit Barriers(Concrete& made) : made_(made) {}

  void expand() {
    std::vector<size_t> counts;
    for (const auto& steps : made_.steps)
      counts.push_back(size_t(std::count_if(steps.begin(), steps.end(), is_barrier)));
    for (size_t rank = 1; rank < counts.size(); ++rank) {
      if (counts[rank] == counts[0]) continue;
      throw UsageError(
          fmt::format("rank 0 reaches {} barriers, but rank {} reaches {}", counts[0], rank, counts[rank]));
    }
    first_flag_ = uint32_t(made_.flags.size());
    if (counts.empty() || counts[0] == 0) return;
    for (size_t barrier = 0; barrier < counts[0]; ++barrier) {
      for (uint32_t round = 0; round < 2; ++round) {
        for (uint32_t poster = 0; poster < made_.ranks; ++poster)
          for (uint32_t taker = 0; taker < made_.ranks; ++taker)
            made_.flags.push_back({schedule::ConcreteFlag::Use::author, schedule::Flag::Kind::binary, poster,
                                   taker, fmt::format("barrier {}", barrier)});
      }
    }
    for (uint32_t rank = 0; rank < made_.ranks; ++rank) replace(rank);
  }

 private:
  static bool is_barrier(const Step& step) { return step.kind == StepKind::barrier; }

  uint32_t flag(size_t barrier, uint32_t round, uint32_t poster, uint32_t taker) const {
    return first_flag_ + uint32_t(((barrier * 2 + round) * made_.ranks + poster) * made_.ranks + taker);
  }

  void replace(uint32_t rank) {
    std::vector<Step> steps;
    size_t barrier = 0;
    for (Step& step : made_.steps[rank]) {
      if (!is_barrier(step)) {
        steps.push_back(std::move(step));
        continue;
      }
      for (uint32_t round = 0; round < 2; ++round) {
        for (const StepKind kind : {StepKind::post, StepKind::take}) {
          for (uint32_t peer = 0; peer < made_.ranks; ++peer) {
            if (peer == rank) continue;
            Step one = step;
            one.kind = kind;
            one.peer = peer;
            one.flag =
                kind == StepKind::post ? flag(barrier, round, rank, peer) : flag(barrier, round, peer, rank);
            steps.push_back(std::move(one));
          }
        }
      }
      ++barrier;
    }
    made_.steps[rank] = std::move(steps);
  }

  Concrete& made_;
  uint32_t first_flag_ = 0;
};

}  // namespace

Unrolled unroll(const schedule::Schedule& schedule, Concrete expanded) {
  refuse_counters(schedule, expanded);
  Barriers(expanded).expand();
  Unrolled all;
  all.reached.resize(expanded.tensors.size());
  for (const auto& steps : expanded.steps) {
    for (const Step& step : steps) {
      if (step.kind == StepKind::put) all.reached[step.writes[0].tensor] = true;
      if (step.kind == StepKind::get) all.reached[step.reads[0].tensor] = true;
    }
  }
  std::vector<uint32_t> taken(expanded.ranks);
  for (const schedule::ConcreteFlag& flag : expanded.flags) {
    all.flags.push_back({flag.poster, flag.taker, flag.name});
    all.place_of_flag.push_back(taken[flag.taker]++);
  }
  all.flags_per_rank = taken.empty() ? 0 : *std::max_element(taken.begin(), taken.end());
  all.concrete = std::move(expanded);
  return all;
}

namespace {

class RankProgramMaker {
 public:
  RankProgramMaker(const Unrolled& unrolled, uint32_t rank, const Memory& memory,
                   const HostFunctions& functions)
      : all_(unrolled.concrete), unrolled_(unrolled), rank_(rank), memory_(memory), functions_(functions) {
    program_.streams.resize(all_.streams.size());
  }

  RankProgram make(const std::vector<Copy>& before, const std::vector<Copy>& after) {
    std::vector<bool> used(all_.streams.size());
    for (const Step& step : all_.steps[rank_]) used[step.stream] = true;
    if (!before.empty()) add({.kind = StepKind::copy, .copies = before});
    for (uint32_t stream = 1; stream < used.size(); ++stream)
      if (used[stream]) add({.kind = StepKind::after, .stream = stream, .points = {point(0)}});
    for (const Step& step : all_.steps[rank_]) {
      if (step.kind == StepKind::launch) {
        follow_launch(step);
        add(action(step));
        last_launch_ = point(step.stream);
      } else if (step.kind == StepKind::mark && step.token) {
        add_mark(step);
      } else {
        add(action(step));
      }
    }
    Action end{.kind = StepKind::after};
    for (uint32_t stream = 1; stream < used.size(); ++stream)
      if (used[stream]) end.points.push_back(point(stream));
    add(std::move(end));
    if (!after.empty()) add({.kind = StepKind::copy, .copies = after});
    return std::move(program_);
  }

 private:
  void add(Action action) {
    program_.streams[action.stream].push_back(uint32_t(program_.actions.size()));
    program_.actions.push_back(std::move(action));
  }

  /// Makes a launch wait for the one before it. The launches of a rank run one after the other, on any of its
  /// streams, in the same order on all ranks. So only one stream at a time uses an executor, and the thread
  /// blocks of two launches that wait for peers never block each other.
  void follow_launch(const Step& step) {
    if (last_launch_ && last_launch_->stream != step.stream)
      add({.kind = StepKind::after, .stream = step.stream, .step = &step, .points = {*last_launch_}});
  }

  /// Adds a mark at the end of a group, for which another stream waits after this stream has gone on.
  void add_mark(const Step& step) {
    Action mark = action(step);
    mark.points = {
        {step.stream, program_.streams[step.stream].size() + 1, uint32_t(program_.actions.size())}};
    marks_[step.token] = mark.points[0];
    add(std::move(mark));
  }

  /// Returns the point after everything that is on a stream so far.
  Action::Point point(uint32_t stream) const { return {stream, program_.streams[stream].size()}; }

  TensorView view(const Box& box) const {
    return {memory_.tensors[rank_][box.tensor] + box.offset_bytes, all_.tensors[box.tensor].dtype, box.shape,
            box.strides};
  }

  std::vector<Copy> copies(const Box& to, uint32_t to_rank, const Box& from, uint32_t from_rank) const {
    return copies_between(memory_.tensors[to_rank][to.tensor], to, all_.tensors[to.tensor],
                          memory_.tensors[from_rank][from.tensor], from, all_.tensors[from.tensor]);
  }

  Action action(const Step& step) const {
    Action action{.kind = step.kind, .stream = step.stream, .step = &step};
    switch (step.kind) {
      case StepKind::copy:
        action.copies = copies(step.writes[0], rank_, step.reads[0], rank_);
        break;
      case StepKind::put:
        action.copies = copies(step.writes[0], step.peer, step.reads[0], rank_);
        action.peer = int(step.peer);
        break;
      case StepKind::get:
        action.copies = copies(step.writes[0], rank_, step.reads[0], step.peer);
        action.peer = int(step.peer);
        break;
      case StepKind::launch:
        action.writes.push_back(view(step.writes[0]));
        action.reads.push_back(view(step.reads[0]));
        break;
      case StepKind::fill:
      case StepKind::call: {
        for (const Box& box : step.writes) action.writes.push_back(view(box));
        for (const Box& box : step.reads) action.reads.push_back(view(box));
        const std::string name = step.kind == StepKind::fill ? "fill" : step.name;
        action.function = &functions_.at(step.built_in ? built_in_name(name) : name);
        break;
      }
      case StepKind::after:
        if (step.token) {
          action.points = {marks_.at(step.token)};
          break;
        }
        for (const uint32_t stream : step.streams)
          if (stream != step.stream) action.points.push_back(point(stream));
        break;
      case StepKind::post:
      case StepKind::take:
        action.flag = memory_.flags[step.flag];
        action.peer = int(step.peer);
        break;
      default:
        break;  // a mark does nothing
    }
    return action;
  }

  const Concrete& all_;
  const Unrolled& unrolled_;
  const uint32_t rank_;
  const Memory& memory_;
  const HostFunctions& functions_;
  std::optional<Action::Point> last_launch_;
  std::map<uint32_t, Action::Point> marks_;  // by token
  RankProgram program_;
};

}  // namespace

RankProgram make_rank_program(const Unrolled& unrolled, uint32_t rank, const Memory& memory,
                              const HostFunctions& functions, const std::vector<Copy>& before,
                              const std::vector<Copy>& after) {
  return RankProgramMaker(unrolled, rank, memory, functions).make(before, after);
}

std::string describe(const schedule::Schedule& schedule, const Unrolled& unrolled, uint32_t rank,
                     const Action& action) {
  const Concrete& all = unrolled.concrete;
  std::string text = fmt::format("rank {}, stream {}", rank, all.streams[action.stream]);
  if (!action.step)
    return text + (action.kind == StepKind::after ? ": the begin or end of a run" : ": staging");
  const Step& step = *action.step;
  for (const auto& [variable, value] : step.turn) text += fmt::format(", {} = {}", variable, value);
  text += fmt::format(": {}", schedule::step_names[size_t(action.kind)]);
  if (!step.name.empty()) text += fmt::format(" '{}'", step.name);
  if (action.kind == StepKind::post || action.kind == StepKind::take) {
    text += fmt::format(" of '{}' {} rank {}", unrolled.flags[step.flag].name,
                        action.kind == StepKind::take ? "from" : "at", step.peer);
  } else if (!step.writes.empty()) {
    text += " to " + schedule::text(all, step.writes[0]);
  }
  for (const Action::Point& point : action.points) text += fmt::format(" {}", all.streams[point.stream]);
  const SourceLine line = schedule.line_of(step.at);
  return line.line ? text + fmt::format(" ({}:{})", line.file, line.line) : text;
}

void call_function(const Action& action, const World& world, void* stream) {
  std::map<std::string, int64_t> attributes = action.step->attributes;
  if (action.kind == StepKind::fill) attributes["value"] = action.step->value;
  (*action.function)({.name = action.step->name,
                      .writes = action.writes,
                      .reads = action.reads,
                      .attributes = attributes,
                      .rank = world.rank(),
                      .ranks = world.ranks(),
                      .stream_index = action.stream,
                      .stream = stream});
}

}  // namespace chorale::schedule_run
