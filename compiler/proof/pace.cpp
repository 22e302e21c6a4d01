// What is posted in a turn is taken in the same turn, or some turns before or behind, by as many as more are
// posted or taken outside of pipelines, or are there from the beginning. That is so if the pipelines in which
// one block posts correspond to those in which the other one takes, in order: they cover the same chunks by
// the same unit, and have as many posts a turn as takes. Packets that are written in a turn are read in it.
//
// If so for all, follow back what comes before what: from a turn of one block to one of another, which is
// that many turns apart, and in that block to what it waited for before, in this turn or in the one before.
// No block is passed twice: its own turns come one after the other. So the way back ends in a turn that is
// apart by the sum for all blocks at most, whatever the number of turns: with more turns than that, those at
// the beginning are told from those at the end. Of several ways the shortest counts, as it leads to the
// latest turn; but where packets, relaxed signals or switches tell of less than others do, a longer one may
// count.
//
// A barrier is posted and taken by all who come to it.
//
// Costs O(n log n) for n operations, and O(p w) for p pipelines that wait w times together.

#include "pace.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

#include "../channel_ends.hpp"
#include "../resolve.hpp"
#include "steps.hpp"

namespace chorale::proof {
namespace {

using Kind = Step::Kind;

/// A pipeline in which a block uses a counter.
struct Loop {
  const Op* pipeline;
  OpPlace at;           ///< its first use
  uint64_t before = 0;  ///< uses outside of pipelines before it
  uint64_t a_turn = 0;
};

/// A block that posts to a counter, or takes from it.
struct End {
  uint32_t block = 0;
  uint64_t outside = 0;
  std::vector<Loop> loops;
};

struct Uses {
  uint64_t initial = 0;
  std::vector<End> posters, takers;
};

bool corresponds(const Loop& one, const Loop& other) {
  return one.pipeline->unit_bytes == other.pipeline->unit_bytes &&
         one.pipeline->chunks == other.pipeline->chunks && one.a_turn == other.a_turn;
}

class Paces {
 public:
  explicit Paces(const Plan& plan) : plan_(plan), channels_(list_channel_ends(plan)) {
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

  Pace find() {
    Steps steps;
    for_each_op(plan_,
                [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op* loop, OpPlace at) {
                  tells_less_ |= loop && op.via == ChannelType::switched;
                  if (!op.ids && !shape(op.code).has_any(packet_roles)) return;
                  list_steps(plan_, gpu, block, op, steps);
                  for (const Step& step : steps.steps) add(step, loop, at);
                  for (const Access& access : steps.accesses) {
                    if (loop && access.packets) add(access, at);
                  }
                });
    for (const auto& [key, uses] : counters_) compare(uses);
    join_by_packets();
    // Blocks of which one can follow the other.
    std::map<uint32_t, uint64_t> sums;
    for (uint32_t block = 0; block < ahead_.size(); ++block)
      sums[root(block)] += ahead_[block] + (tells_less_ && waits_[block] ? 1 : 0);
    for (const auto& [first, sum] : sums) pace_.ahead = std::max(pace_.ahead, sum);
    if (!tells_less_) pace_.ahead += longest_way();
    return pace_;
  }

 private:
  /// Of a rank: channels by type, semaphores and barriers by the kind of who waits there.
  using Key = std::tuple<uint32_t, Kind, ChannelType, uint32_t>;

  void add(const Step& step, const Op* loop, const OpPlace& at) {
    const uint32_t block = block_of(at);
    const bool waits = step.kind == Kind::await || step.kind == Kind::acquire || step.kind == Kind::arrive;
    if (loop && waits) waits_[block] = true;
    tells_less_ |= loop && step.relaxed;
    switch (step.kind) {
      case Kind::post:
      case Kind::push: {
        if (step.kind == Kind::push && !step.posts) return;
        const size_t type = step.via == two_ended_types[0] ? 0 : 1;
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

  void add(const Access& packets, const OpPlace& at) {
    packets_.push_back({packets.rank, packets.begin, packets.end, block_of(at)});
    if (!packets.write) waits_[block_of(at)] = true;
    tells_less_ = true;
  }

  /// Blocks that write or read the same ones.
  void join_by_packets() {
    std::sort(packets_.begin(), packets_.end());
    uint64_t end = 0;
    for (size_t k = 0; k < packets_.size(); ++k) {
      const auto& [rank, first, last, block] = packets_[k];
      if (k && std::get<0>(packets_[k - 1]) == rank && first < end)
        join(std::get<3>(packets_[k - 1]), block);
      else
        end = 0;
      end = std::max(end, last);
    }
  }

  uint32_t block_of(const OpPlace& at) const { return first_block_[at.rank] + at.threadblock; }

  /// Operations come block by block.
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
    // The first block of those who meet stands for what comes from any.
    const End& from = uses.posters.empty() ? uses.takers[0] : uses.posters[0];
    for (const End& to : uses.takers) {
      for (const End& poster : uses.posters) join(poster.block, to.block);
      join(from.block, to.block);
      const bool competes = uses.posters.size() > 1 || (!uses.posters.empty() && uses.takers.size() > 1);
      if (competes) {
        tells_less_ = true;
        uint64_t outside = uses.initial;
        for (const End& end : uses.posters) outside += end.outside;
        ahead_[to.block] = std::max(ahead_[to.block], outside);
      } else {
        compare(from, to, uses.initial);
      }
    }
  }

  void compare(const End& from, const End& to, uint64_t initial) {
    for (size_t k = 0; k < std::max(from.loops.size(), to.loops.size()); ++k) {
      if (k >= from.loops.size() || k >= to.loops.size() || !corresponds(from.loops[k], to.loops[k])) {
        if (!pace_.mismatch && !from.loops.empty() && !to.loops.empty())
          pace_.mismatch = {from.loops[std::min(k, from.loops.size() - 1)].at,
                            to.loops[std::min(k, to.loops.size() - 1)].at};
        return;
      }
      const uint64_t posted = from.loops[k].before + initial, taken = to.loops[k].before;
      const uint64_t apart = std::max(posted, taken) - std::min(posted, taken);
      ahead_[to.block] = std::max(ahead_[to.block], apart);
    }
  }

  /// What pipelines wait for, and in which pipelines it is posted.
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

  /// The most pipelines that the shortest way from one to another has behind it.
  uint64_t longest_way() const {
    uint64_t longest = 0;
    std::vector<uint32_t> now, next;
    for (uint32_t first = 0; first < waits_at_.size(); ++first) {
      std::vector<bool> passed(gates_.size()), seen(waits_at_.size());
      seen[first] = true;
      now = {first};
      for (uint64_t way = 1; !now.empty(); ++way) {
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
        if (!next.empty()) longest = std::max(longest, way);
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
  std::vector<uint64_t> ahead_;        // by block: of those that it takes from
  std::vector<bool> waits_;            // by block: in a pipeline
  std::vector<std::tuple<uint32_t, uint64_t, uint64_t, uint32_t>> packets_;  // rank, begin, end and block
  std::map<Key, Uses> counters_;
  std::map<const Op*, uint32_t> pipelines_;      // their numbers
  std::vector<std::vector<uint32_t>> gates_;     // the pipelines that post
  std::vector<std::vector<uint32_t>> waits_at_;  // by pipeline: gates
  /// Some wait shows less of what came before than another one would.
  bool tells_less_ = false;
  Pace pace_;
};

}  // namespace

Pace pace_of(const Plan& plan) {
  bool any = false;
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op&, const Op* loop, OpPlace) {
    any |= loop != nullptr;
  });
  return any ? Paces(plan).find() : Pace{};
}

}  // namespace chorale::proof
