// This rewrite joins neighbouring operations of a thread block into one with the same meaning. The table in
// fuse_rules.hpp has the rules, and join.cpp says what each kind of rule requires.
//
// It is correct because it joins only direct neighbours, so no other operation of this block comes between
// them. A joined operation keeps the order of its operands (join.cpp) and the order with what the threads of
// the block do before and after it (keep_thread_order()).
//
// A fence in front of a pipeline is dropped if every turn begins with a fence. A fence after it is dropped if
// every turn ends with a fence that an operation asks for. A pipeline has at least one turn, unless the
// message is empty. A fence inside is never dropped in favour of one outside, because the next turn needs it.
//
// It costs the fences of keep_thread_order(). It gains fewer operations, and results that stay in registers.

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "chorale/plan.hpp"
#include "chorale/rewrites.hpp"
#include "compiler/plan/roles.hpp"
#include "join.hpp"

namespace chorale {
namespace {

class ThreadOrder {
 public:
  ThreadOrder(const ThreadBlock& block, std::vector<Op>& ops) : block_(block), ops_(ops) {}

  void list(size_t from, size_t to) {
    for (size_t at = from; at < to; ++at) {
      Op& op = ops_[at];
      if (is_fence(op)) {
        forget();
      } else if (op.body) {
        const size_t end = at + 1 + op.body;
        for (int turn = 0; turn < 2; ++turn) list(at + 1, end);
        at = end - 1;
      } else {
        one(op);
      }
    }
  }

 private:
  void one(Op& op) {
    const Shape& row = shape(op.code);
    const IdKind kind = id_kind(row, op.via);
    if (kind == IdKind::none || row.has(Role::Channels)) return;
    if (uint8_t(op.sync) & uint8_t(SyncType::before)) forget();
    const bool waits = row.has_any(await_roles) || row.has(Role::Acquire) || row.has(Role::Drain);
    const bool posts = row.has_any(post_roles) || row.has(Role::Release) || row.has(Role::PortChannels);
    const bool several = op.ids > 1;
    bool fence = posts && (several_wait_ || (one_waits_ && several));
    // Ids are numbered per type of channel; semaphores count as another type.
    const ChannelType type = kind == IdKind::channel ? op.via : ChannelType::none;
    const std::span<const uint32_t> ids = block_.op_ids(op);
    for (size_t k = 0; k < ids.size(); ++k) {
      const auto found = threads_.find({type, ids[k]});
      fence |= found != threads_.end() && found->second != k;
    }
    if (fence) {
      op.sync = SyncType(uint8_t(op.sync) | uint8_t(SyncType::before));
      forget();
    }
    if (uint8_t(op.sync) & uint8_t(SyncType::after)) return forget();
    if (waits) (several ? several_wait_ : one_waits_) = true;
    for (size_t k = 0; k < ids.size(); ++k) threads_[{type, ids[k]}] = k;
  }

  void forget() {
    one_waits_ = several_wait_ = false;
    threads_.clear();
  }

  const ThreadBlock& block_;
  std::vector<Op>& ops_;
  // These members describe what has happened since the last fence.
  bool one_waits_ = false, several_wait_ = false;               // an operation with one id, with several
  std::map<std::pair<ChannelType, uint32_t>, size_t> threads_;  // the thread that served an id last
};

/// Asks for a fence (Op::sync) where joined operations need one to keep the order that they had before.
void keep_thread_order(const ThreadBlock& block, std::vector<Op>& ops) {
  ThreadOrder(block, ops).list(0, ops.size());
}

void drop(Op& op, SyncType side) { op.sync = SyncType(uint8_t(op.sync) & ~uint8_t(side)); }

/// Holds positions in Plan::joined.
using Joined = std::map<std::vector<JoinedCall>, uint32_t>;

class Fusion {
 public:
  Fusion(Plan& plan, const Gpu& gpu, ThreadBlock& block, const OpBounds& bounds,
         std::optional<Readers>& readers, std::optional<Waiters>& waiters, Joined& joined,
         std::vector<Op>& out)
      : plan_(plan),
        block_(block),
        joiner_(plan, gpu, block, bounds, readers, waiters),
        joined_(joined),
        out_(out) {}

  bool run() {
    out_.clear();
    list(0, block_.ops.size());
    if (!changed_) return false;
    keep_thread_order(block_, out_);
    block_.ops = std::vector<Op>(out_.begin(), out_.end());  // without room for dropped operations
    compact();
    return true;
  }

 private:
  /// Appends operations [from, to), and joins each to the one before it if a rule allows that.
  void list(size_t from, size_t to) {
    size_t floor = out_.size();  // the next operation does not directly follow those before it
    bool synced = false;         // the previous operation is a pipeline whose turns end with a fence
    for (size_t at = from; at < to; ++at) {
      Op op = block_.ops[at];
      if (synced && op.code == Opcode::nop) {
        changed_ = true;
        continue;
      }
      if (synced && wants(op, SyncType::before)) {
        drop(op, SyncType::before);
        changed_ = true;
      }
      synced = false;
      if (out_.size() > floor) {
        const Op left = out_.back();
        if (joiner_.join(out_.back(), op)) {
          keep_lines(left, op, out_.back());
          changed_ = true;
          continue;
        }
      }
      out_.push_back(op);
      if (!op.body) continue;
      size_t loop = out_.size() - 1;
      list(at + 1, at + 1 + op.body);
      out_[loop].body = uint32_t(out_.size() - loop - 1);
      if (loop > floor) drop_fence_before(loop, floor);
      synced = wants(out_.back(), SyncType::after);
      floor = out_.size();
      at += op.body;
    }
  }

  /// Lets an operation that was made of two know the lines of both.
  void keep_lines(const Op& left, const Op& right, Op& joined) {
    if (!left.at || !right.at || is_fence(left) || is_fence(right)) return;
    if (left.at == right.at && left.at < joined_calls) return;
    calls_.clear();
    const auto add = [&](const Op& op) {
      const std::span<const JoinedCall> calls = plan_.calls_of(op);
      if (calls.empty()) calls_.push_back({op.at, op.sources, op.destinations, op.ids});
      calls_.insert(calls_.end(), calls.begin(), calls.end());
    };
    add(left);
    const size_t first = calls_.size();
    add(right);
    // The right operation has the entries that the joined one has beyond those of the left one. A source
    // that the left one has just written is not among them.
    const bool replaced = joiner_.replaced_destinations();
    if (replaced)
      for (size_t at = 0; at < first; ++at) calls_[at].destinations = 0;
    JoinedCall& last = calls_[first];
    last.sources -= std::min<uint32_t>(last.sources, left.sources + right.sources - joined.sources);
    last.destinations -= std::min<uint32_t>(
        last.destinations, (replaced ? 0 : left.destinations) + right.destinations - joined.destinations);
    last.ids -= std::min<uint32_t>(last.ids, left.ids + right.ids - joined.ids);
    if (first && calls_[first - 1].at == last.at) {
      JoinedCall& before = calls_[first - 1];
      before.sources += last.sources;
      before.destinations += last.destinations;
      before.ids += last.ids;
      calls_.erase(calls_.begin() + ptrdiff_t(first));
    }
    const auto [known, added] = joined_.try_emplace(calls_, uint32_t(plan_.joined.size()));
    if (added) plan_.joined.push_back(calls_);
    joined.at = joined_calls + known->second;
  }

  /// Drops the fence in front of the pipeline at `loop` if its turns begin with one. The list of the pipeline
  /// begins at `floor`.
  void drop_fence_before(size_t loop, size_t floor) {
    const Op& first = out_[loop + 1];
    if (!is_fence(first) && !wants(first, SyncType::before)) return;
    if (out_[loop - 1].code == Opcode::nop) {
      out_.erase(out_.begin() + ptrdiff_t(--loop));
      changed_ = true;
    }
    if (loop > floor && wants(out_[loop - 1], SyncType::after)) {
      drop(out_[loop - 1], SyncType::after);
      changed_ = true;
    }
  }

  /// Drops the operands and ids of operations that no longer exist.
  void compact() {
    size_t most_operands = 0, most_ids = 0;
    for (const Op& op : block_.ops) {
      most_operands += op.sources + op.destinations;
      most_ids += op.ids;
    }
    std::vector<Operand> operands;
    std::vector<uint32_t> ids;
    operands.reserve(most_operands);
    ids.reserve(most_ids);
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

  Plan& plan_;
  ThreadBlock& block_;
  Joiner joiner_;
  Joined& joined_;
  std::vector<Op>& out_;           // reused for all blocks, so that its memory is allocated once
  std::vector<JoinedCall> calls_;  // of the operation that is being joined
  bool changed_ = false;
};

}  // namespace

bool pass::fuse(Plan& plan, const CompileOptions& options) {
  if (!options.fuse) return false;
  bool changed = false;
  std::optional<Readers> readers;
  Joined joined;
  for (uint32_t at = 0; at < plan.joined.size(); ++at) joined.try_emplace(plan.joined[at], at);
  std::vector<Op> out;
  for (Gpu& gpu : plan.gpus) {
    std::optional<Waiters> waiters;
    for (ThreadBlock& block : gpu.threadblocks)
      changed |= Fusion(plan, gpu, block, op_bounds(options.target), readers, waiters, joined, out).run();
  }
  return changed;
}

}  // namespace chorale
