// This rewrite joins neighbouring operations of a thread block into one that means the same. The rules are a
// table (fuse_rules.hpp), and join.cpp says what each kind of rule demands.
//
// It is right because only direct neighbours are joined, so that nothing of this block comes between. What is
// joined keeps its order, among its operands (join.cpp) and with what the threads of the block do before and
// after it (thread_order.cpp).
//
// A fence in front of a pipeline is dropped if every turn begins with one, and a fence after it if every turn
// ends with one that an operation asks for. A pipeline has at least one turn, unless the message is empty. A
// turn's fence is never dropped for one outside, because the next turn needs it.
//
// It costs the fences of thread_order.cpp. It gains fewer operations, and results that stay in registers.

#include <utility>

#include "../plan/roles.hpp"
#include "chorale/compile.hpp"
#include "join.hpp"
#include "thread_order.hpp"

namespace chorale {
namespace {

void drop(Op& op, SyncType side) { op.sync = SyncType(uint8_t(op.sync) & ~uint8_t(side)); }

class Fusion {
 public:
  Fusion(const Plan& plan, const Gpu& gpu, ThreadBlock& block, const OpBounds& bounds,
         std::optional<Readers>& readers, std::optional<Waiters>& waiters, std::vector<Op>& out)
      : block_(block), joiner_(plan, gpu, block, bounds, readers, waiters), out_(out) {}

  bool run() {
    out_.clear();
    list(0, block_.ops.size());
    if (!changed_) return false;
    keep_thread_order(block_, out_);
    block_.ops = std::vector<Op>(out_.begin(), out_.end());  // without the room for those that are gone
    compact();
    return true;
  }

 private:
  /// Takes over operations [from, to), each joined to the one before it if a rule allows.
  void list(size_t from, size_t to) {
    size_t floor = out_.size();  // operations before it are not followed directly by the next one
    bool synced = false;         // the operation before is a pipeline whose turns end with a fence
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
      if (out_.size() > floor && joiner_.join(out_.back(), op)) {
        changed_ = true;
        continue;
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

  /// Drops the fence in front of the pipeline at `loop` if its turns begin with one. Its list begins at
  /// `floor`.
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

  /// Drops the lists of operations that are gone.
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

  ThreadBlock& block_;
  Joiner joiner_;
  std::vector<Op>& out_;  // of all blocks in turn, so that its room is made once
  bool changed_ = false;
};

}  // namespace

bool pass::fuse(Plan& plan, const CompileOptions& options) {
  if (!options.fuse) return false;
  bool changed = false;
  std::optional<Readers> readers;
  std::vector<Op> out;
  for (Gpu& gpu : plan.gpus) {
    std::optional<Waiters> waiters;
    for (ThreadBlock& block : gpu.threadblocks)
      changed |= Fusion(plan, gpu, block, op_bounds(options.target), readers, waiters, out).run();
  }
  return changed;
}

}  // namespace chorale
