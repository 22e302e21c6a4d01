// This rewrite replaces operations that MSCCL++ lacks, or that have more operands than one of its operations
// can hold. Our own executor has and holds them all.
//   combine_packets p q r -> d    becomes    unpack_packets p -> d; reduce_packets d q r -> d
//   reduce a b ... y z -> d       becomes    reduce a b ... -> d; reduce d y z -> d
//
// It is correct because the operands are combined in the same order as before, and the parts meet in d, where
// dependency_sync sees them. This requires that no later operand overlaps d. If one does, the operation stays
// whole and the target refuses it. Reductions of packets and of peers' chunks work in the same way. A result
// in 16 or 8 bits is rounded once more for every further part.
//
// It costs a store and a load of d per part.

#include <algorithm>
#include <utility>

#include "accesses.hpp"
#include "chorale/rewrites.hpp"
#include "compiler/plan/roles.hpp"
#include "compiler/targets/bounds.hpp"

namespace chorale {
namespace {

class Lowering {
 public:
  Lowering(const Plan& plan, const Gpu& gpu, const ThreadBlock& block, size_t most)
      : plan_(plan), gpu_(gpu), block_(block), most_(most), out_(block) {}

  /// Builds the block with its operations lowered. Returns false, and builds nothing, if there is nothing to
  /// do.
  bool run(ThreadBlock& result) {
    out_.ops.clear();
    size_t loop = 0, end = 0;
    for (size_t at = 0; at < block_.ops.size(); ++at) {
      const Op& op = block_.ops[at];
      if (at == end && end) close(loop, end);
      if (!lower(op)) out_.ops.push_back(op);
      if (!op.body) continue;
      loop = out_.ops.size() - 1;
      end = at + 1 + op.body;
    }
    if (end) close(loop, end);
    if (!changed_) return false;
    result = std::move(out_);
    return true;
  }

 private:
  void close(size_t loop, size_t& end) {
    out_.ops[loop].body = uint32_t(out_.ops.size() - loop - 1);
    end = 0;
  }

  bool lower(const Op& op) {
    const Shape& row = shape(op.code);
    const bool combines = op.code == Opcode::combine_packets;
    const bool splits = row.has(Role::Reduce) && row.sources.size() == 2 && row.dests.size() == 1;
    if (op.extra || (!combines && (!splits || op.sources <= most_))) return false;
    if (touched_again(op)) return false;
    const std::span<const Operand> sources = block_.sources(op);
    const Operand into = block_.dests(op)[0];
    const Opcode link = combines ? Opcode::reduce_packets : op.code;
    size_t next = most_;
    if (combines) {
      part(op, Opcode::unpack_packets, {sources[0]}, into);
      next = 1;
    } else {
      part(op, link, {sources.begin(), sources.begin() + ptrdiff_t(next)}, into);
    }
    while (next < sources.size()) {
      const size_t end = std::min(sources.size(), next + most_ - 1);
      std::vector<Operand> parts{into};
      parts.insert(parts.end(), sources.begin() + ptrdiff_t(next), sources.begin() + ptrdiff_t(end));
      part(op, link, parts, into);
      next = end;
    }
    return changed_ = true;
  }

  void part(const Op& whole, Opcode code, const std::vector<Operand>& sources, const Operand& into) {
    Op& op = append(out_, code, sources, {&into, 1});
    if (shape(code).has(Role::Via)) op.via = whole.via;
    op.reduce_op = whole.reduce_op;
    op.group_index = whole.group_index;
    op.group_size = whole.group_size;
    op.at = whole.at;
  }

  /// Returns whether an operand after the first overlaps the destination.
  bool touched_again(const Op& op) const {
    std::vector<Access> accesses;
    list_accesses(plan_, gpu_, block_, op, true, accesses);
    for (size_t k = 1; k + 1 < accesses.size(); ++k) {
      if (overlap(accesses[k], accesses.back())) return true;
    }
    return false;
  }

  const Plan& plan_;
  const Gpu& gpu_;
  const ThreadBlock& block_;
  const size_t most_;
  ThreadBlock out_;
  bool changed_ = false;
};

}  // namespace

bool pass::lower(Plan& plan, const CompileOptions& options) {
  if (options.target == Target::chorale) return false;
  bool changed = false;
  for (Gpu& gpu : plan.gpus) {
    for (ThreadBlock& block : gpu.threadblocks) {
      ThreadBlock result;
      if (!Lowering(plan, gpu, block, op_bounds(options.target).operands).run(result)) continue;
      block = std::move(result);
      changed = true;
    }
  }
  return changed;
}

}  // namespace chorale
