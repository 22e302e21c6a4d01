// This rewrite replaces Op::sync by nops.
//
// It is correct because every operation gets a fence wherever it asked for one: a new nop, or a nop or
// barrier that is already there. A fence at the edge of a pipeline's body does not count for operations
// outside, and a fence outside does not count for the body. The reason is that the body runs again, and the
// first operation of a turn follows the last one of the turn before. (Where a fence inside also serves
// outside, the rewrite fuse has already dropped the outer one.)
//
// It costs one thread synchronisation per nop. Two neighbours that both ask for one share it, unless the
// author wants nothing joined and exactly MSCCL++'s operations.

#include <utility>

#include "chorale/rewrites.hpp"
#include "compiler/plan/roles.hpp"

namespace chorale {
namespace {

class Expansion {
 public:
  Expansion(const std::vector<Op>& ops, bool share) : ops_(ops), share_(share) {
    out.reserve(ops.size() * 2);
  }

  std::vector<Op> out;

  /// Copies operations [from, to), which run one after the other.
  void list(size_t from, size_t to) {
    bool fenced = false;       // the last operation of this list is a fence
    const Op* owed = nullptr;  // the last operation wants a fence after it
    for (size_t at = from; at < to; ++at) {
      const Op& op = ops_[at];
      if (owed && !share_) {
        fence(*owed);
        owed = nullptr;
      }
      if (is_fence(op)) {
        owed = nullptr;
      } else if (owed || (wants(op, SyncType::before) && !fenced)) {
        fence(owed ? *owed : op);
        owed = nullptr;
      }
      const size_t position = out.size();
      out.push_back(op);
      out.back().sync = SyncType::none;
      if (op.body) {
        list(at + 1, at + 1 + op.body);
        out[position].body = uint32_t(out.size() - position - 1);
        at += op.body;
      }
      fenced = is_fence(op) && share_;
      if (wants(op, SyncType::after) && !is_fence(op)) owed = &op;
    }
    if (owed) fence(*owed);
  }

 private:
  void fence(const Op& cause) {
    Op nop;
    nop.at = cause.at;
    out.push_back(nop);
  }

  const std::vector<Op>& ops_;
  const bool share_;
};

}  // namespace

bool pass::data_sync(Plan& plan, const CompileOptions& options) {
  const bool share = options.fuse || options.target != Target::mscclpp;
  bool changed = false;
  for (Gpu& gpu : plan.gpus) {
    for (ThreadBlock& block : gpu.threadblocks) {
      bool any = false;
      for (const Op& op : block.ops) any |= op.sync != SyncType::none;
      if (!any) continue;
      Expansion expansion(block.ops, share);
      expansion.list(0, block.ops.size());
      block.ops = std::move(expansion.out);
      changed = true;
    }
  }
  return changed;
}

}  // namespace chorale
