#include "chorale/comparison.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "launch_spans.hpp"

namespace chorale {

using namespace profile_of;

namespace {

/// Holds the times of an operation, including operations that one of the two sides counts as part of it.
struct Part {
  uint32_t op = 0;
  std::vector<uint32_t> with = {};                              ///< those operations, in order
  std::optional<uint64_t> measured_ns = {}, predicted_ns = {};  ///< none: that side has no time for the part
};

using Times = std::vector<std::optional<uint64_t>>;  // by operation

constexpr uint32_t none = ~uint32_t{0};

Times times_of(size_t ops, std::span<const TraceSpan* const> spans) {
  Times times(ops);
  for (const TraceSpan* span : spans)
    times[span->op] = times[span->op].value_or(0) + span->end_ns - span->begin_ns;
  return times;
}

bool packs_here(const OpInfo& op) {
  return op.has(Role::PacketWrite) && !op.has(Role::PacketRead) && !op.has(Role::RemotePacketWrite);
}

/// Returns the next operation after `op` that is not synchronisation, if it adds packets; else none.
uint32_t sum_behind(std::span<const Op> ops, uint32_t op) {
  uint32_t next = op + 1;
  while (next < ops.size() && ops[next].code == Opcode::nop) ++next;
  if (next == ops.size()) return none;
  const OpInfo& of = info(ops[next].code);
  return of.has(Role::Reduce) && of.has(Role::PacketRead) ? next : none;
}

/// Returns whether a span of `before` may include the later operation `op`.
bool holds(const Op& before, const Op& op) {
  return info(op.code).has(Role::Loop) || before.code == op.code ||
         (moves_data(info(before.code)) && moves_data(info(op.code)));
}

/// Finds, for each operation, the operation to which its times count; none: there are no times.
class Owners {
 public:
  Owners(std::span<const Op> ops, const Times& measured, const Times& predicted)
      : ops_(ops), measured_(measured), predicted_(predicted), owners_(ops.size(), none) {
    add_predicted();
    add_synchronisation();
  }

  uint32_t of(uint32_t op) const { return owners_[op]; }

 private:
  void add_predicted() {
    uint32_t before = none;
    for (uint32_t op = 0; op < ops_.size(); ++op) {
      if (measured_[op]) owners_[op] = before = op;
      if (measured_[op] || !predicted_[op]) continue;
      const uint32_t behind = packs_here(info(ops_[op].code)) ? sum_behind(ops_, op) : none;
      if (behind != none && measured_[behind]) {
        owners_[op] = behind;
      } else {
        owners_[op] = before != none && holds(ops_[before], ops_[op]) ? before : op;
      }
    }
  }

  /// Counts measured nops as part of the operation after them, as the prediction does.
  void add_synchronisation() {
    std::vector<bool> has_prediction(ops_.size());
    for (uint32_t op = 0; op < ops_.size(); ++op)
      if (predicted_[op]) has_prediction[owners_[op]] = true;
    uint32_t next = none;
    for (uint32_t op = uint32_t(ops_.size()); op-- > 0;) {
      if (owners_[op] != op) continue;
      const bool predicted = has_prediction[op];
      if (ops_[op].code == Opcode::nop && !predicted) {
        if (next != none) owners_[op] = next;
      } else {
        next = measured_[op] && predicted ? op : none;
      }
    }
  }

  std::span<const Op> ops_;
  const Times &measured_, &predicted_;
  std::vector<uint32_t> owners_;
};

void add(std::optional<uint64_t>& sum, const std::optional<uint64_t>& ns) {
  if (ns) sum = sum.value_or(0) + *ns;
}

/// Divides the spans of one thread block with the operations `ops` into parts.
///
/// If an operation is predicted but has no measured span, it was not done, or its time is in the span of
/// another operation. A GPU runs neighbouring posts and waits at the same time, and runs small copies
/// together. It adds a rank's own packets from the memory from which they were packed, and counts the turns
/// of a pipeline as the operation before the pipeline. The simulator counts a nop as part of the operation
/// after it.
std::vector<Part> parts_of(std::span<const Op> ops, std::span<const TraceSpan* const> measured,
                           std::span<const TraceSpan* const> predicted) {
  const Times measured_ns = times_of(ops.size(), measured), predicted_ns = times_of(ops.size(), predicted);
  const Owners owners(ops, measured_ns, predicted_ns);
  std::vector<Part> parts;
  std::vector<uint32_t> at(ops.size(), none);
  for (uint32_t op = 0; op < ops.size(); ++op) {
    if (owners.of(op) != op) continue;
    at[op] = uint32_t(parts.size());
    parts.push_back({.op = op});
  }
  for (uint32_t op = 0; op < ops.size(); ++op) {
    const uint32_t owner = owners.of(op);
    if (owner == none) continue;
    Part& part = parts[at[owner]];
    if (owner != op) part.with.push_back(op);
    add(part.measured_ns, measured_ns[op]);
    add(part.predicted_ns, predicted_ns[op]);
  }
  return parts;
}

/// Tells which of the two launches has time for a part.
enum class Side : uint8_t { both, measured, predicted };

Side side_of(const Part& part) {
  if (!part.measured_ns) return Side::predicted;
  return part.predicted_ns ? Side::both : Side::measured;
}

TimeKind kind_of(std::span<const Op> ops, const Part& part) {
  const auto turns = [&](uint32_t op) { return info(ops[op].code).has(Role::Loop); };
  const OpInfo& op = info(ops[part.op].code);
  if (turns(part.op) || std::any_of(part.with.begin(), part.with.end(), turns)) return TimeKind::turns;
  if (op.has(Role::PacketRead)) return TimeKind::packets;
  return only_waits(op) ? TimeKind::waits : TimeKind::work;
}

ProfilePlace place_of_operation(const Plan& plan, const Op& op) {
  return {ProfilePlace::Kind::operation, info(op.code).name, plan.line_of(op)};
}

/// Adds up the times per thread block. Add all parts of one block before those of the next.
class Blocks {
 public:
  void add(uint32_t rank, uint32_t block, const Part& part) {
    if (all_.empty() || all_.back().rank != rank || all_.back().block != block) all_.push_back({rank, block});
    all_.back().measured_ns += part.measured_ns.value_or(0);
    all_.back().predicted_ns += part.predicted_ns.value_or(0);
  }

  uint32_t count() const { return uint32_t(all_.size()); }
  BlockTimes measured() const { return times(&One::measured_ns); }
  BlockTimes predicted() const { return times(&One::predicted_ns); }

 private:
  struct One {
    uint32_t rank, block;
    uint64_t measured_ns = 0, predicted_ns = 0;
  };

  BlockTimes times(uint64_t One::*ns) const {
    BlockTimes times;
    std::vector<uint64_t> sorted;
    for (const One& one : all_) {
      if (sorted.empty() || one.*ns > times.longest_ns) times = {0, one.*ns, one.rank, one.block};
      sorted.push_back(one.*ns);
    }
    std::sort(sorted.begin(), sorted.end());
    const size_t middle = sorted.size() / 2;
    times.median_ns =
        sorted.size() % 2 ? sorted[middle] : sorted[middle - 1] + (sorted[middle] - sorted[middle - 1]) / 2;
    return times;
  }

  std::vector<One> all_;
};

/// Adds up the lines of a comparison.
class Lines {
 public:
  void add(const Plan& plan, uint32_t rank, uint32_t block, const Part& part) {
    const std::vector<Op>& ops = plan.gpus[rank].threadblocks[block].ops;
    const TimeKind kind = kind_of(ops, part);
    const ProfilePlace place = place_of_operation(plan, ops[part.op]);
    Line& line = lines_[{side_of(part), kind, place.line.file, place.line.line, place.name}];
    line.place = place;
    for (const uint32_t op : part.with) {
      const ProfilePlace other = place_of_operation(plan, ops[op]);
      if (other == place || std::find(line.with.begin(), line.with.end(), other) != line.with.end()) continue;
      line.with.push_back(other);
    }
    line.blocks.add(rank, block, part);
    kinds_[kind].add(rank, block, part);
  }

  std::vector<ComparedLine> of(Side side) const {
    std::vector<ComparedLine> list;
    for (const auto& [key, line] : lines_) {
      if (std::get<Side>(key) != side) continue;
      list.push_back({line.place, std::get<TimeKind>(key), line.with, line.blocks.count(),
                      line.blocks.measured(), line.blocks.predicted()});
    }
    std::stable_sort(list.begin(), list.end(), [](const ComparedLine& a, const ComparedLine& b) {
      const auto last = [](const ComparedLine& line) { return line.kind == TimeKind::waits; };
      return std::tuple(last(a), -std::llabs(a.gap_ns())) < std::tuple(last(b), -std::llabs(b.gap_ns()));
    });
    return list;
  }

  std::vector<ComparedKind> kinds() const {
    std::vector<ComparedKind> list;
    for (const auto& [kind, blocks] : kinds_)
      list.push_back({kind, blocks.count(), blocks.measured(), blocks.predicted()});
    return list;
  }

 private:
  struct Line {
    ProfilePlace place;
    std::vector<ProfilePlace> with;
    Blocks blocks;
  };

  std::map<std::tuple<Side, TimeKind, std::string, uint32_t, std::string_view>, Line> lines_;
  std::map<TimeKind, Blocks> kinds_;
};

}  // namespace

Comparison compare(const Plan& plan, uint64_t bytes, std::span<const TraceSpan> measured, Clocks clocks,
                   std::span<const TraceSpan> predicted) {
  Comparison comparison;
  const LaunchSpans ran(plan, measured, bytes), simulated(plan, predicted, bytes);
  comparison.launch = ran.launch();
  if (ran.launch() == 0) return comparison;
  comparison.measured_ns = whole_launch(ran, plan.ranks(), clocks).ns;
  if (simulated.launch() != 0)
    comparison.predicted_ns = whole_launch(simulated, plan.ranks(), Clocks::one).ns;
  Lines lines;
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    const std::vector<ThreadBlock>& blocks = plan.gpus[rank].threadblocks;
    for (uint32_t block = 0; block < blocks.size(); ++block) {
      for (const Part& part : parts_of(blocks[block].ops, ran.of(rank, block), simulated.of(rank, block)))
        lines.add(plan, rank, block, part);
    }
  }
  comparison.lines = lines.of(Side::both);
  comparison.only_measured = lines.of(Side::measured);
  comparison.only_predicted = lines.of(Side::predicted);
  comparison.kinds = lines.kinds();
  return comparison;
}

}  // namespace chorale
