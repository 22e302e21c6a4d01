// This file computes the loop skew and argues why few turns are enough.
//
// A post made in a turn is taken in the same turn, or a fixed number of turns earlier or later. This distance
// is the difference between posts and takes outside of pipelines, including posts that are there from the
// beginning. This holds if the pipelines in which one block posts correspond, in order, to those in which the
// other block takes: they cover the same chunks by the same unit, and have as many posts per turn as takes.
// Packets that are written in a turn are read in it.
//
// If this holds for all, consider paths of events, each of which comes before the next. A path continues
// within a block, also to its next turn, or to another block, as many turns back or ahead as the distance of
// the two. It need not visit a block twice, because a block keeps its knowledge. (The exception is knowledge
// from packets before the threads of the block have synchronised. But threads synchronise when they take from
// a counter, and packets never lead a turn back.) So a path leads back at most by the sum of the distances of
// all connected blocks.
//
// Order: add one turn to all pipelines. In each turn the same blocks wait for each other and learn the same.
// So a path remains, because blocks pass through the new turn, unless it leads back over the place of that
// turn. Accesses to the same bytes are in the same turn, or outside of pipelines. So the place may be
// anywhere after that turn, or anywhere before it. (If operands are chunks apart, the accesses may also be
// all turns of a chunk apart. That is more than paths lead back, so they are ordered as their turns are, and
// there is a place between the two.) If paths lead back over all places after the turn and over all places
// before it, together they go back as many turns as there are. But they go back at most twice the sum. So
// with more turns than that, everything that is ordered with this number of turns is also ordered with one
// turn more. This holds for `visible` and for `over`, however little a packet or a relaxed signal tells.
// Knowledge of switches is passed on in two ways, one after the other, so it counts double.
//
// Deadlock: with more turns, a path may pass through a whole pipeline that it did not pass through before,
// and close a cycle. But a block passes on what it has waited for in the next turn at the latest, with
// whatever it waits. So the shortest path from one pipeline to another takes one turn per pipeline on it,
// plus the turns that they are apart. With as many turns as the longest of these paths takes, every path
// through a pipeline exists that exists with more turns.
//
// If it is not known which block waits for which, one turn counts for each connected block that waits. This
// happens when packets are written in other turns than they are read in, and when blocks compete. If blocks
// compete, the verdict is `bounded`. More turns then show the consequences of each order, but not that every
// order occurs.
//
// A barrier counts as posted and taken by all blocks that arrive at it.
//
// This costs O(n log n) for n operations, and O(p w) for p pipelines that wait w times together.

#include "loop_skew.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

#include "compiler/plan/channel_ends.hpp"
#include "compiler/plan/resolve.hpp"
#include "steps.hpp"

namespace chorale::proof {
namespace {

using Kind = SymbolicStep::Kind;

/// Describes a pipeline in which a block uses a counter.
struct Loop {
  const Op* pipeline;
  OpPlace at;           ///< its first use
  uint64_t before = 0;  ///< uses outside of pipelines before it
  uint64_t a_turn = 0;
};

/// Describes a block that posts to a counter, or takes from it.
struct End {
  uint32_t block = 0;
  uint64_t outside = 0;
  std::vector<Loop> loops;
};

struct Uses {
  uint64_t initial = 0;
  std::vector<End> posters, takers;
};

/// Describes an operand whose packets a block writes or waits for.
struct Packets {
  uint32_t rank = 0;
  uint64_t begin = 0, end = 0;
  uint32_t members = 1, member = 0;  ///< of the group that shares the operand
  bool write = false;
  uint32_t block = 0;
  const Op* pipeline = nullptr;  ///< null: outside

  bool shared_alike(const Packets& other) const {
    return begin == other.begin && end == other.end && members == other.members;
  }
};

bool same_turns(const Op& one, const Op& other) {
  return one.unit_bytes == other.unit_bytes && one.chunks == other.chunks;
}

bool corresponds(const Loop& one, const Loop& other) {
  return same_turns(*one.pipeline, *other.pipeline) && one.a_turn == other.a_turn;
}

class SkewFinder {
 public:
  explicit SkewFinder(const Plan& plan) : plan_(plan), channels_(list_channel_ends(plan)) {
    uint32_t blocks = 0;
    for (const Gpu& gpu : plan.gpus) {
      first_block_.push_back(blocks);
      blocks += uint32_t(gpu.threadblocks.size());
    }
    parents_.resize(blocks);
    std::iota(parents_.begin(), parents_.end(), 0);
    ahead_.resize(blocks);
    waits_.resize(blocks);
  }

  LoopSkew find() {
    SymbolicSteps steps;
    for_each_op(plan_,
                [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op* loop, OpPlace at) {
                  switched_ |= is_switched(op.via);
                  if (!op.ids && !shape(op.code).has_any(packet_roles)) return;
                  list_steps(plan_, gpu, block, op, steps);
                  for (const SymbolicStep& step : steps.steps) {
                    add(step, loop, at);
                    for (uint32_t k = 0; k < step.sources + step.dests; ++k)
                      add(steps.accesses[step.first + k], op, loop, at);
                  }
                });
    for (const auto& [key, uses] : counters_) compare(uses);
    pair_packets();
    // The distances of blocks add up if one can follow the other.
    std::map<uint32_t, uint64_t> sums;
    for (uint32_t block = 0; block < ahead_.size(); ++block)
      sums[root(block)] += (switched_ ? 4 : 2) * ahead_[block] + (in_doubt_ && waits_[block] ? 1 : 0);
    for (const auto& [first, sum] : sums) skew_.ahead = std::max(skew_.ahead, sum);
    if (!in_doubt_) skew_.ahead += longest_path();
    return skew_;
  }

 private:
  /// Identifies a counter within a rank. Channels have their type in it, semaphores and barriers the step
  /// that waits at them.
  using Key = std::tuple<uint32_t, Kind, ChannelType, uint32_t>;

  void add(const SymbolicStep& step, const Op* loop, const OpPlace& at) {
    const uint32_t block = block_of(at);
    const bool waits = step.kind == Kind::await || step.kind == Kind::acquire || step.kind == Kind::arrive;
    if (loop && waits) waits_[block] = true;
    switch (step.kind) {
      case Kind::post:
      case Kind::push: {
        if (step.kind == Kind::push && !step.posts) return;
        const size_t type = signalled_position(step.via);
        const uint32_t mate = channels_[at.rank].mates[type][step.id];
        if (mate == ChannelEnds::none) return;
        const Key key{channels_[at.rank].peers[type][step.id], Kind::await, step.via, mate};
        return count(counters_[key].posters, block, loop, at);
      }
      case Kind::await:
        return count(counters_[{at.rank, Kind::await, step.via, step.id}].takers, block, loop, at);
      case Kind::release:
      case Kind::acquire: {
        Uses& uses = counters_[{at.rank, Kind::acquire, ChannelType::none, step.id}];
        uses.initial = uint64_t(std::max<int64_t>(plan_.gpus[at.rank].semaphores[step.id], 0));
        return count(step.kind == Kind::release ? uses.posters : uses.takers, block, loop, at);
      }
      case Kind::arrive:
        return count(counters_[{at.rank, Kind::arrive, ChannelType::none, step.id}].takers, block, loop, at);
      default:
        return;
    }
  }

  void add(const Access& access, const Op& op, const Op* loop, const OpPlace& at) {
    if (!access.packets) return;
    if (loop && !access.write) waits_[block_of(at)] = true;
    packets_.push_back({access.rank, access.begin, access.end, std::max<uint32_t>(op.group_size, 1),
                        op.group_index, access.write, block_of(at), loop});
  }

  /// Pairs the packets of operands that overlap.
  void pair_packets() {
    const auto key = [](const Packets& of) { return std::tuple(of.rank, of.begin, of.end); };
    std::sort(packets_.begin(), packets_.end(),
              [&](const Packets& a, const Packets& b) { return key(a) < key(b); });
    for (size_t first = 0, last = 0; first < packets_.size(); first = last) {
      uint64_t end = 0;
      for (; last < packets_.size() && packets_[last].rank == packets_[first].rank &&
             (last == first || packets_[last].begin < end);
           ++last)
        end = std::max(end, packets_[last].end);
      pair_packets({packets_.begin() + ptrdiff_t(first), packets_.begin() + ptrdiff_t(last)});
    }
  }

  void pair_packets(std::span<const Packets> all) {
    const Packets* before = nullptr;
    bool any = false;
    for (const Packets& of : all) {
      if (!of.pipeline) continue;
      if (before) join(before->block, of.block);
      before = &of;
      any |= of.write;
    }
    for (const Packets& of : all) {
      if (any && of.pipeline && !of.write) note_writer(of, all);
    }
  }

  /// Records the pipeline that writes the packets for which a reader waits. There must be exactly one, and it
  /// must write the same packets in the same turns.
  void note_writer(const Packets& reader, std::span<const Packets> all) {
    const Op* writes = nullptr;
    for (const Packets& of : all) {
      if (!of.write) continue;
      if (!of.shared_alike(reader)) {
        in_doubt_ = true;
      } else if (of.member == reader.member) {
        in_doubt_ |=
            !of.pipeline || (writes && writes != of.pipeline) || !same_turns(*of.pipeline, *reader.pipeline);
        writes = of.pipeline;
      }
      if (in_doubt_) return;
    }
    if (!writes) return;
    const auto [found, added] = packet_gates_.try_emplace(writes, uint32_t(gates_.size()));
    if (added) gates_.push_back({number_of(writes)});
    waits_at_[number_of(reader.pipeline)].push_back(found->second);
  }

  uint32_t block_of(const OpPlace& at) const { return first_block_[at.rank] + at.threadblock; }

  /// Counts a use of a counter. Operations must come block by block.
  static void count(std::vector<End>& ends, uint32_t block, const Op* loop, const OpPlace& at) {
    if (ends.empty() || ends.back().block != block) ends.emplace_back().block = block;
    End& end = ends.back();
    if (!loop) {
      ++end.outside;
      return;
    }
    if (end.loops.empty() || end.loops.back().pipeline != loop)
      end.loops.push_back({loop, at, end.outside, 0});
    ++end.loops.back().a_turn;
  }

  void compare(const Uses& uses) {
    const auto inside = [](const End& end) { return !end.loops.empty(); };
    if (std::none_of(uses.posters.begin(), uses.posters.end(), inside) &&
        std::none_of(uses.takers.begin(), uses.takers.end(), inside))
      return;
    note_gates(uses.posters.empty() ? uses.takers : uses.posters, uses.takers);
    // At a barrier, the first block stands for all that arrive.
    const End& from = uses.posters.empty() ? uses.takers[0] : uses.posters[0];
    for (const End& to : uses.takers) {
      for (const End& poster : uses.posters) join(poster.block, to.block);
      join(from.block, to.block);
      const bool competes = uses.posters.size() > 1 || (!uses.posters.empty() && uses.takers.size() > 1);
      if (competes) {
        in_doubt_ = true;
        uint64_t outside = uses.initial;
        for (const End& end : uses.posters) outside += end.outside;
        ahead_[to.block] = std::max(ahead_[to.block], outside);
      } else {
        compare(from, to, uses.initial);
      }
    }
    if (uses.posters.empty()) compare_all(uses.takers);
  }

  /// Compares each block that arrives at a barrier with all others.
  void compare_all(const std::vector<End>& ends) {
    for (size_t k = 0; k < ends[0].loops.size(); ++k) {
      uint64_t least = ~uint64_t{0}, most = 0;
      for (const End& end : ends) {
        if (k >= end.loops.size()) continue;
        least = std::min(least, end.loops[k].before);
        most = std::max(most, end.loops[k].before);
      }
      for (const End& end : ends) {
        if (k >= end.loops.size()) continue;
        const uint64_t before = end.loops[k].before;
        ahead_[end.block] = std::max({ahead_[end.block], before - least, most - before});
      }
    }
  }

  void compare(const End& from, const End& to, uint64_t initial) {
    for (size_t k = 0; k < std::max(from.loops.size(), to.loops.size()); ++k) {
      if (k >= from.loops.size() || k >= to.loops.size() || !corresponds(from.loops[k], to.loops[k])) {
        if (!skew_.mismatch && !from.loops.empty() && !to.loops.empty())
          skew_.mismatch = {from.loops[std::min(k, from.loops.size() - 1)].at,
                            to.loops[std::min(k, to.loops.size() - 1)].at};
        return;
      }
      const uint64_t posted = from.loops[k].before + initial, taken = to.loops[k].before;
      const uint64_t apart = std::max(posted, taken) - std::min(posted, taken);
      ahead_[to.block] = std::max(ahead_[to.block], apart);
    }
  }

  /// Records the counters that pipelines wait for, and the pipelines that post to each of them.
  void note_gates(const std::vector<End>& posters, const std::vector<End>& takers) {
    for (size_t k = 0;; ++k) {
      std::vector<uint32_t> posted;
      for (const End& end : posters) {
        if (k < end.loops.size()) posted.push_back(number_of(end.loops[k].pipeline));
      }
      if (posted.empty()) return;
      for (const End& end : takers) {
        if (k < end.loops.size())
          waits_at_[number_of(end.loops[k].pipeline)].push_back(uint32_t(gates_.size()));
      }
      gates_.push_back(std::move(posted));
    }
  }

  uint32_t number_of(const Op* pipeline) {
    const auto [found, added] = pipelines_.try_emplace(pipeline, uint32_t(waits_at_.size()));
    if (added) waits_at_.emplace_back();
    return found->second;
  }

  /// Returns the largest number of pipelines on the shortest path from one pipeline to another.
  uint64_t longest_path() const {
    uint64_t longest = 0;
    std::vector<uint32_t> now, next;
    for (uint32_t first = 0; first < waits_at_.size(); ++first) {
      std::vector<bool> passed(gates_.size()), seen(waits_at_.size());
      seen[first] = true;
      now = {first};
      for (uint64_t length = 1; !now.empty(); ++length) {
        next.clear();
        for (const uint32_t pipeline : now) {
          for (const uint32_t gate : waits_at_[pipeline]) {
            if (passed[gate]) continue;
            passed[gate] = true;
            for (const uint32_t before : gates_[gate]) {
              if (!seen[before]) next.push_back(before);
              seen[before] = true;
            }
          }
        }
        if (!next.empty()) longest = std::max(longest, length);
        std::swap(now, next);
      }
    }
    return longest;
  }

  uint32_t root(uint32_t block) {
    while (parents_[block] != block) block = parents_[block] = parents_[parents_[block]];
    return block;
  }
  void join(uint32_t one, uint32_t other) { parents_[root(one)] = root(other); }

  const Plan& plan_;
  const std::vector<ChannelEnds> channels_;
  std::vector<uint32_t> first_block_;  // by rank
  std::vector<uint32_t> parents_;      // by block
  std::vector<uint64_t> ahead_;        // by block: largest distance in turns from a block that it takes from
  std::vector<bool> waits_;            // by block: it waits in a pipeline
  std::vector<Packets> packets_;
  std::map<Key, Uses> counters_;
  std::map<const Op*, uint32_t> pipelines_;      // their numbers
  std::vector<std::vector<uint32_t>> gates_;     // the pipelines that post
  std::vector<std::vector<uint32_t>> waits_at_;  // by pipeline: gates
  std::map<const Op*, uint32_t> packet_gates_;   // by the pipeline that writes
  bool switched_ = false;
  /// This is true if several blocks compete, or if packets are written more than once or in other turns than
  /// they are read in.
  bool in_doubt_ = false;
  LoopSkew skew_;
};

}  // namespace

LoopSkew skew_of(const Plan& plan) {
  bool any = false;
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op&, const Op* loop, OpPlace) {
    any |= loop != nullptr;
  });
  return any ? SkewFinder(plan).find() : LoopSkew{};
}

}  // namespace chorale::proof
