// Joins neighbouring operations of a thread block into one that means the same. The
// rules are a table; what each kind of rule demands stands beside it.
//
// Right, for all kinds: only direct neighbours are joined, so that nothing of this
// block comes between. What no join may change is the order of two accesses to one
// chunk. Operations that work element by element keep it where the chunks are the
// very same, because one thread then does both in order; any other overlap of the two
// with a write forbids the join, in this rank's memory and in a peer's.
//
// Ids of control operations and port transfers are served by one thread each. Joined,
// an id may move to another thread, which has not seen what the first did; so the
// result has a fence on both sides. Operations that wait are joined only if no other
// block of the rank waits on the same: taking two things in any order, instead of one
// after the other, can else take what another block needs to go on.
//
// A chain of reductions in a 16-bit or 8-bit type is rounded once instead of at every
// link, which is why its result may differ in the last bit from that of the parts.
//
// Costs: the fences, which control operations have anyway unless the author said
// otherwise. Gains: fewer operations, results that stay in registers.

#include <algorithm>
#include <optional>
#include <utility>

#include "../resolve.hpp"
#include "../roles.hpp"
#include "chorale/compile.hpp"
#include "fuse_rules.hpp"
#include "usage.hpp"

namespace chorale {
namespace {

/// What an operation of MSCCL++'s executor holds; more would not load there.
constexpr size_t max_remote = 8, max_operands = 10, max_channels = 8, max_semaphores = 16;

/// The lists of a joined operation.
struct Parts {
  std::vector<Operand> sources, dests;
  std::vector<uint32_t> ids;
};

template <class T>
std::vector<T> joined(std::span<const T> left, std::span<const T> right) {
  std::vector<T> both(left.begin(), left.end());
  both.insert(both.end(), right.begin(), right.end());
  return both;
}

class Fusion {
 public:
  Fusion(const Plan& plan, const Gpu& gpu, ThreadBlock& block, std::optional<Readers>& readers,
         std::optional<Waiters>& waiters)
      : plan_(plan), gpu_(gpu), block_(block), readers_(readers), waiters_(waiters) {}

  bool run() {
    out_.reserve(block_.ops.size());
    list(0, block_.ops.size());
    if (!changed_) return false;
    block_.ops = std::move(out_);
    compact();
    return true;
  }

 private:
  /// Takes over operations [from, to), each joined to the one before it if a rule allows.
  void list(size_t from, size_t to) {
    size_t floor = out_.size();  // what stands before it is not followed directly by what comes
    for (size_t at = from; at < to; ++at) {
      const Op op = block_.ops[at];
      if (out_.size() > floor && join(out_.back(), op)) {
        changed_ = true;
        continue;
      }
      out_.push_back(op);
      if (!op.body) continue;
      const size_t loop = out_.size() - 1;
      list(at + 1, at + 1 + op.body);
      out_[loop].body = uint32_t(out_.size() - loop - 1);
      floor = out_.size();
      at += op.body;
    }
  }

  bool join(Op& left, const Op& right) {
    const Rule* rule = rule_for(left.code, right.code);
    if (!rule || left.extra || right.extra) return false;
    if (rule->join == Join::fence) {
      if (right.code == rule->result) left = right;
      return true;
    }
    if (left.group_index != right.group_index || left.group_size != right.group_size) return false;
    Parts parts;
    if (!matches(*rule, left, right, parts) || !fits(*rule, right.via, parts)) return false;
    if (!keeps_order(rule->join, left, right)) return false;
    replace(*rule, left, right, parts);
    return true;
  }

  bool matches(const Rule& rule, const Op& left, const Op& right, Parts& parts) {
    const std::span<const Operand> left_sources = sources(left), right_sources = sources(right);
    const std::span<const Operand> left_dests = dests(left), right_dests = dests(right);
    parts.sources.assign(left_sources.begin(), left_sources.end());
    parts.dests.assign(left_dests.begin(), left_dests.end());
    const auto all_are = [&](const Operand& made) {
      return std::all_of(right_sources.begin(), right_sources.end(),
                         [&](const Operand& source) { return source == made; });
    };
    switch (rule.join) {
      case Join::fence:
        return true;
      case Join::ids:
        return left.via == right.via && unite_ids(left, right, parts);
      case Join::lists:
        parts.sources = joined(left_sources, right_sources);
        parts.dests = joined(left_dests, right_dests);
        return left.via == right.via && left_sources[0].size == right_sources[0].size &&
               unite_ids(left, right, parts);
      case Join::forward:
        parts.dests = joined(left_dests, right_dests);
        return left.via == right.via && left_sources[0] == right_sources[0] && unite_ids(left, right, parts);
      case Join::chain:
        // An average is divided once for each operation.
        if (left.reduce_op != right.reduce_op || left.reduce_op == ReduceOp::avg || left.via != right.via)
          return false;
        parts.sources = joined(left_sources, right_sources.subspan(1));
        return left_dests[0] == right_sources[0] && left_dests[0] == right_dests[0] && !reads_again(right);
      case Join::store:
        parts.dests = joined(left_dests, right_dests);
        return right.via == ChannelType::memory && all_are(left_dests[0]);
      case Join::keep:
        parts.dests = joined(left_dests, right_dests);
        return all_are(left_dests[0]);
      case Join::relay:
        parts.dests = joined(left_dests, right_dests);
        return right.via == ChannelType::memory && all_are(left_dests[1]);
      case Join::multicast:
        parts.dests.assign(right_dests.begin(), right_dests.end());
        return all_are(left_dests[0]) && left_sources[0].ref == right_dests[0].ref && unused(left, right);
    }
    return false;
  }

  /// The ids of both; false if they share one, or if waiting on both at once could starve another block.
  bool unite_ids(const Op& left, const Op& right, Parts& parts) {
    const std::span<const uint32_t> more = block_ids(right);
    parts.ids = joined(block_ids(left), more);
    const IdKind kind = id_kind(shape(left.code), left.via);
    if (kind == IdKind::none) parts.ids.clear();  // memory puts need no channel
    if (kind == IdKind::none || shape(left.code).has(Role::Channels)) return true;
    for (const uint32_t id : block_ids(left)) {
      if (std::find(more.begin(), more.end(), id) != more.end()) return false;
    }
    const Shape& row = shape(left.code);
    if (!row.has_any(await_roles) && !row.has(Role::Acquire)) return true;
    if (!waiters_) waiters_.emplace(gpu_);
    return waiters_->only(block_, left) && waiters_->only(block_, right);
  }

  /// True if a later source of `right` touches its own destination: it wants the value that the chain has not
  /// stored.
  bool reads_again(const Op& right) {
    std::vector<Access> accesses;
    list_accesses(plan_, gpu_, block_, right, false, accesses);
    const auto written =
        std::find_if(accesses.begin(), accesses.end(), [](const Access& access) { return access.write; });
    if (written == accesses.end()) return false;
    return std::count_if(accesses.begin(), accesses.end(), [&](const Access& access) {
             return !access.write && overlap(access, *written);
           }) > 1;
  }

  /// True if the chunks that `left` reduces to need not be written: the broadcast stores the same there, or
  /// it is no result and no other operation of any rank reads it.
  bool unused(const Op& left, const Op& right) {
    std::vector<Access> first, second;
    list_accesses(plan_, gpu_, block_, left, true, first);
    list_accesses(plan_, gpu_, block_, right, true, second);
    // Sources come first, and the destination is the last access.
    if (first.empty()) return false;
    const Access dropped = first.back();
    if (std::find(second.begin(), second.end(), dropped) != second.end()) return true;
    const bool result =
        dropped.buffer == BufferKind::output || (plan_.inplace && dropped.buffer != BufferKind::scratch);
    if (result) return false;
    if (!readers_) readers_.emplace(plan_);
    return readers_->count(dropped) == Readers::count(first, dropped) + Readers::count(second, dropped);
  }

  bool fits(const Rule& rule, ChannelType via, const Parts& parts) {
    const Shape& row = shape(rule.result);
    const auto small = [&](bool in_dst, const std::vector<Operand>& list) {
      size_t remote = 0;
      for (size_t k = 0; k < list.size(); ++k) remote += is_remote(row.field(in_dst, k)->role);
      return remote <= max_remote && list.size() <= max_operands;
    };
    const bool semaphores = id_kind(row, via) == IdKind::semaphore;
    return small(false, parts.sources) && small(true, parts.dests) &&
           parts.ids.size() <= (semaphores ? max_semaphores : max_channels);
  }

  /// True if no two accesses to a chunk change their order.
  bool keeps_order(Join join, const Op& left, const Op& right) {
    if (join == Join::ids) return true;
    const bool by_element = join != Join::lists && join != Join::forward;
    first_.clear();
    second_.clear();
    list_accesses(plan_, gpu_, block_, left, true, first_);
    list_accesses(plan_, gpu_, block_, right, true, second_);
    for (const Access& before : first_) {
      for (const Access& after : second_) {
        if (!conflict(before, after)) continue;
        const bool same =
            before.packets == after.packets && before.begin == after.begin && before.end == after.end;
        if (!by_element || !same) return false;
      }
    }
    return true;
  }

  void replace(const Rule& rule, Op& left, const Op& right, const Parts& parts) {
    const bool one_thread_each = !parts.ids.empty() && !shape(rule.result).has(Role::Channels);
    left.code = rule.result;
    if (left.via == ChannelType::none)
      left.via = shape(rule.result).has(Role::Via) ? right.via : ChannelType::none;
    left.sync = one_thread_each ? SyncType::both : SyncType(uint8_t(left.sync) | uint8_t(right.sync));
    left.first_operand = uint32_t(block_.operands.size());
    left.sources = uint32_t(parts.sources.size());
    left.destinations = uint32_t(parts.dests.size());
    left.first_id = uint32_t(block_.ids.size());
    left.ids = uint32_t(parts.ids.size());
    block_.operands.insert(block_.operands.end(), parts.sources.begin(), parts.sources.end());
    block_.operands.insert(block_.operands.end(), parts.dests.begin(), parts.dests.end());
    block_.ids.insert(block_.ids.end(), parts.ids.begin(), parts.ids.end());
  }

  /// Drops the lists of operations that are gone.
  void compact() {
    std::vector<Operand> operands;
    std::vector<uint32_t> ids;
    for (Op& op : block_.ops) {
      const Operand* from = block_.operands.data() + op.first_operand;
      op.first_operand = uint32_t(operands.size());
      operands.insert(operands.end(), from, from + op.sources + op.destinations);
      const uint32_t* first = block_.ids.data() + op.first_id;
      op.first_id = uint32_t(ids.size());
      ids.insert(ids.end(), first, first + op.ids);
    }
    block_.operands = std::move(operands);
    block_.ids = std::move(ids);
  }

  std::span<const Operand> sources(const Op& op) const { return std::as_const(block_).sources(op); }
  std::span<const Operand> dests(const Op& op) const { return std::as_const(block_).dests(op); }
  std::span<const uint32_t> block_ids(const Op& op) const { return block_.op_ids(op); }

  const Plan& plan_;
  const Gpu& gpu_;
  ThreadBlock& block_;
  std::optional<Readers>& readers_;
  std::optional<Waiters>& waiters_;
  std::vector<Op> out_;
  std::vector<Access> first_, second_;
  bool changed_ = false;
};

}  // namespace

bool pass::fuse(Plan& plan, const CompileOptions& options) {
  if (!options.fuse) return false;
  bool changed = false;
  std::optional<Readers> readers;
  for (Gpu& gpu : plan.gpus) {
    std::optional<Waiters> waiters;
    for (ThreadBlock& block : gpu.threadblocks) changed |= Fusion(plan, gpu, block, readers, waiters).run();
  }
  return changed;
}

}  // namespace chorale
