// Puts a nop in front of an operation that touches chunks which an earlier operation
// of the block touched since the last nop, if one of the two overwrites them.
//
// Right because threads of a block share out an operation's elements each in its own
// way, so that only a nop orders two operations that touch the same chunks. All
// accesses count that reach this rank's memory, by the role of the operand: packets,
// switch regions, and both names of memory that is input and output in place. An
// operation's own accesses are added after it was compared, so that it neither
// conflicts with itself nor hides what came before. What other blocks and ranks do is
// ordered by signals and barriers, not here; neither is the source of a port put,
// which is free only after a flush.
//
// A pipeline's body is taken twice, the second time behind the first: that finds what
// an operation has to wait for from the turn before. Twice is enough, because the
// second time starts with everything that any later turn can start with. Chunks, not
// units, are compared, which may cost a nop a turn that the units would not need.
//
// Costs one thread synchronisation for each nop and O(n log n) time.

#include <algorithm>
#include <array>
#include <map>

#include "../roles.hpp"
#include "accesses.hpp"
#include "chorale/compile.hpp"

namespace chorale {
namespace {

/// Disjoint ranges of chunks.
class Ranges {
 public:
  bool overlaps(uint64_t begin, uint64_t end) const {
    auto next = ranges_.lower_bound(end);  // the first that starts too late
    return next != ranges_.begin() && std::prev(next)->second > begin;
  }
  void add(uint64_t begin, uint64_t end) {
    auto at = ranges_.upper_bound(begin);
    if (at != ranges_.begin() && std::prev(at)->second >= begin) --at;
    while (at != ranges_.end() && at->first <= end) {
      begin = std::min(begin, at->first);
      end = std::max(end, at->second);
      at = ranges_.erase(at);
    }
    ranges_.emplace(begin, end);
  }
  void add(const Ranges& other) {
    for (const auto& [begin, end] : other.ranges_) add(begin, end);
  }
  void clear() { ranges_.clear(); }
  template <class Visit>
  void each(Visit&& visit) const {
    for (const auto& [begin, end] : ranges_) visit(begin, end);
  }

 private:
  std::map<uint64_t, uint64_t> ranges_;  // begin -> end
};

/// What a block has touched since its last fence.
class Touched {
 public:
  bool conflicts(const Access& access) const {
    const auto hit = [&](bool packets, uint64_t begin, uint64_t end) {
      if (of(access.buffer, packets, true).overlaps(begin, end)) return true;
      return access.write && of(access.buffer, packets, false).overlaps(begin, end);
    };
    const auto [begin, end] = std::pair(access.begin, access.end);
    if (hit(false, begin, end) || hit(true, begin, end)) return true;
    // Between packets and plain chunks the same bytes count too: see overlap().
    if (access.buffer != BufferKind::scratch) return false;
    return access.packets ? hit(false, 2 * begin, 2 * end) : hit(true, begin / 2, end / 2 + end % 2);
  }
  void add(const Access& access) {
    of(access.buffer, access.packets, access.write).add(access.begin, access.end);
  }
  void add(const Touched& other) {
    for (size_t k = 0; k < sets_.size(); ++k) sets_[k].add(other.sets_[k]);
  }
  void clear() {
    for (Ranges& set : sets_) set.clear();
  }
  bool conflicts(const Touched& later) const {
    bool found = false;
    for (size_t k = 0; k < sets_.size(); ++k) {
      later.sets_[k].each([&](uint64_t begin, uint64_t end) {
        found |= conflicts(Access{0, BufferKind(k / 4), bool(k / 2 % 2), bool(k % 2), begin, end});
      });
    }
    return found;
  }

 private:
  static size_t slot(BufferKind buffer, bool packets, bool write) {
    return size_t(buffer) * 4 + packets * 2 + write;
  }
  Ranges& of(BufferKind buffer, bool packets, bool write) { return sets_[slot(buffer, packets, write)]; }
  const Ranges& of(BufferKind buffer, bool packets, bool write) const {
    return sets_[slot(buffer, packets, write)];
  }

  std::array<Ranges, 12> sets_;
};

/// Decides for one thread block which operations get a nop in front.
class Synchronizer {
 public:
  Synchronizer(const Plan& plan, const Gpu& gpu, const ThreadBlock& block)
      : plan_(plan), gpu_(gpu), block_(block), nop_before(block.ops.size()) {}

 private:
  const Plan& plan_;
  const Gpu& gpu_;
  const ThreadBlock& block_;
  std::vector<Access> accesses_;

 public:
  std::vector<bool> nop_before;

  void list(size_t from, size_t to, Touched& touched) {
    for (size_t at = from; at < to; ++at) {
      const Op& op = block_.ops[at];
      if (is_fence(op)) {
        touched.clear();
      } else if (op.body) {
        pipeline(at, touched);
        at += op.body;
      } else {
        one(at, touched);
      }
    }
  }

 private:
  void one(size_t at, Touched& touched) {
    accesses_.clear();
    list_accesses(plan_, gpu_, block_, block_.ops[at], false, accesses_);
    for (const Access& access : accesses_) {
      if (nop_before[at]) break;
      nop_before[at] = touched.conflicts(access);
    }
    if (nop_before[at]) touched.clear();
    for (const Access& access : accesses_) touched.add(access);
  }

  /// Compares the part of the body that runs before its first fence with what came before the pipeline: one
  /// nop in front of the pipeline is cheaper than one in every turn.
  void pipeline(size_t at, Touched& before) {
    const size_t from = at + 1, to = from + block_.ops[at].body;
    Touched inside;
    list(from, to, inside);
    list(from, to, inside);
    Touched head;
    const bool fenced = add_head(from, to, head);
    if (before.conflicts(head)) {
      nop_before[at] = true;
      before.clear();
    }
    if (fenced) before.clear();
    before.add(inside);
  }

  /// Collects the accesses up to the first fence of a body; true if there is a fence.
  bool add_head(size_t from, size_t to, Touched& head) {
    for (size_t at = from; at < to; ++at) {
      if (is_fence(block_.ops[at]) || nop_before[at]) return true;
      accesses_.clear();
      list_accesses(plan_, gpu_, block_, block_.ops[at], false, accesses_);
      for (const Access& access : accesses_) head.add(access);
    }
    return false;
  }
};

/// The operations with their nops.
std::vector<Op> with_nops(const std::vector<Op>& ops, const std::vector<bool>& nop_before) {
  std::vector<Op> out;
  out.reserve(ops.size() + size_t(std::count(nop_before.begin(), nop_before.end(), true)));
  size_t loop = 0, end = 0;
  for (size_t at = 0; at < ops.size(); ++at) {
    if (end && at == end) {
      out[loop].body = uint32_t(out.size() - loop - 1);
      end = 0;
    }
    if (nop_before[at]) {
      Op nop;
      nop.at = ops[at].at;
      out.push_back(nop);
    }
    out.push_back(ops[at]);
    if (ops[at].body) {
      loop = out.size() - 1;
      end = at + 1 + ops[at].body;
    }
  }
  if (end) out[loop].body = uint32_t(out.size() - loop - 1);
  return out;
}

}  // namespace

bool pass::dependency_sync(Plan& plan, const CompileOptions& options) {
  if (!options.auto_sync) return false;
  bool changed = false;
  for (Gpu& gpu : plan.gpus) {
    for (ThreadBlock& block : gpu.threadblocks) {
      Synchronizer synchronizer(plan, gpu, block);
      Touched touched;
      synchronizer.list(0, block.ops.size(), touched);
      const std::vector<bool>& nops = synchronizer.nop_before;
      if (std::find(nops.begin(), nops.end(), true) == nops.end()) continue;
      block.ops = with_nops(block.ops, nops);
      changed = true;
    }
  }
  return changed;
}

}  // namespace chorale
