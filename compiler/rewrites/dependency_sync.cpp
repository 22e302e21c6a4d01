// This rewrite puts a nop in front of an operation if it accesses chunks that an earlier operation of the
// block accessed since the last nop, and one of the two writes them.
//
// It is correct because the threads of a block divide the elements of an operation in different ways, so only
// a nop orders two operations on the same chunks. All accesses to this rank's memory count, by the role of
// the operand: packets, switch regions, and both names of memory that is input and output in place. An
// operation's own accesses are added after it was compared, so it neither conflicts with itself nor hides
// earlier ones. Signals and barriers order other blocks and ranks, so this rewrite ignores them. It does not
// order the source of a port put either, which may be overwritten only after a flush.
//
// Packets that the block writes need no nop before they are read, because a thread waits for each packet that
// it reads, whoever writes it. This is wrong for a slot that is written twice: the reader could take the
// first packet for the second one. In a pipeline every slot counts as written twice.
//
// In a pipeline, accesses since the last nop of a turn are also compared with the beginning of the next turn.
// There, accesses to the very same chunks do not conflict, because each turn takes another unit of them. This
// exception holds neither for packets, nor for scratch that the executor reuses within a chunk, nor for
// slices of different thread block groups. Other overlaps are compared by chunk, which may add a nop that a
// comparison by unit would not.
//
// For MSCCL++ a pipeline counts as one operation with all accesses of its body, as in that executor. For
// Chorale the fences of the body count. A fence in every turn also orders what is before it with what is
// after it outside the pipeline, which has at least one turn.
//
// It costs one thread synchronisation per nop, and O(n log n) time.

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "accesses.hpp"
#include "chorale/rewrites.hpp"
#include "compiler/plan/roles.hpp"

namespace chorale {
namespace {

/// Holds disjoint ranges of chunks.
class Ranges {
 public:
  bool overlaps(uint64_t begin, uint64_t end) const {
    auto next = ranges_.lower_bound(end);  // the first range that starts too late
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

/// Holds the accesses of a block since its last fence.
class Touched {
 public:
  /// \param arrives  true if the access itself waits for packets
  bool conflicts(const Access& access, bool arrives = false) const {
    const auto hit = [&](bool packets, uint64_t begin, uint64_t end) {
      if (of(access.buffer, packets, true).overlaps(begin, end)) return true;
      return access.write && of(access.buffer, packets, false).overlaps(begin, end);
    };
    const auto [begin, end] = std::pair(access.begin, access.end);
    if (hit(false, begin, end) || (!arrives && hit(true, begin, end))) return true;
    // Packets and plain chunks also conflict by byte, see overlap().
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
  Synchronizer(const Plan& plan, const Gpu& gpu, const ThreadBlock& block, bool whole_pipelines)
      : nop_before(block.ops.size()),
        plan_(plan),
        gpu_(gpu),
        block_(block),
        whole_pipelines_(whole_pipelines) {}

  std::vector<bool> nop_before;

  void list(size_t from, size_t to, Touched& touched) {
    for (size_t at = from; at < to; ++at) {
      const Op& op = block_.ops[at];
      if (is_fence(op)) {
        touched.clear();
      } else if (op.body) {
        ++loops_;
        pipeline(at, touched);
        --loops_;
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
      nop_before[at] = touched.conflicts(access, arrives(access));
    }
    if (nop_before[at]) touched.clear();
    for (const Access& access : accesses_) {
      touched.add(access);
      if (!access.packets || !access.write) continue;
      if (loops_ || sent_.overlaps(access.begin, access.end)) sent_again_.add(access.begin, access.end);
      sent_.add(access.begin, access.end);
    }
  }

  /// Returns whether the access waits for packets that this block itself has written.
  bool arrives(const Access& access) const {
    return access.packets && !access.write && !loops_ && !sent_again_.overlaps(access.begin, access.end);
  }

  /// Holds an access and the slice of its chunks that this block takes.
  struct Slice {
    Access access;
    uint32_t group_index, group_size;
  };

  /// Places the nops of a pipeline. The part of the body before its first fence is compared with the
  /// operations before the pipeline, because one nop in front of the pipeline is cheaper than one per turn.
  void pipeline(size_t at, Touched& before) {
    const size_t from = at + 1, to = from + block_.ops[at].body;
    Touched inside;
    list(from, to, inside);
    separate_turns(from, to);
    Touched head;
    size_t fence = from;
    for (; fence < to && (whole_pipelines_ || !fenced(fence)); ++fence) {
      for (const Slice& slice : slices(fence)) head.add(slice.access);
    }
    if (before.conflicts(head)) {
      nop_before[at] = true;
      before.clear();
    }
    if (fence < to) before.clear();
    before.add(whole_pipelines_ ? head : inside);
  }

  /// Puts a nop where a turn first accesses what the previous turn accessed since its last fence.
  void separate_turns(size_t from, size_t to) {
    std::vector<Slice> tail;
    for (size_t at = to; at-- > from;) {
      if (is_fence(block_.ops[at])) break;
      const std::vector<Slice> own = slices(at);
      tail.insert(tail.end(), own.begin(), own.end());
      if (nop_before[at]) break;
    }
    for (size_t at = from; at < to && !fenced(at); ++at) {
      for (const Slice& next : slices(at)) {
        for (const Slice& last : tail) {
          if (conflict(last.access, next.access) && !other_unit(last, next)) nop_before[at] = true;
        }
      }
    }
  }

  bool fenced(size_t at) const { return is_fence(block_.ops[at]) || nop_before[at]; }

  /// Returns whether two accesses of different turns can never overlap, although they name one chunk.
  bool other_unit(const Slice& left, const Slice& right) const {
    const Access &one = left.access, &other = right.access;
    const bool wraps = one.buffer == BufferKind::scratch && plan_.reuse_resources;
    return one.begin == other.begin && one.end == other.end && !one.packets && !other.packets && !wraps &&
           left.group_index == right.group_index && left.group_size == right.group_size;
  }

  std::vector<Slice> slices(size_t at) {
    const Op& op = block_.ops[at];
    accesses_.clear();
    list_accesses(plan_, gpu_, block_, op, false, accesses_);
    std::vector<Slice> out;
    for (const Access& access : accesses_) out.push_back({access, op.group_index, op.group_size});
    return out;
  }

  const Plan& plan_;
  const Gpu& gpu_;
  const ThreadBlock& block_;
  const bool whole_pipelines_;
  std::vector<Access> accesses_;
  Ranges sent_, sent_again_;  // slots that the block has written packets to, and those written more than once
  int loops_ = 0;             // pipelines around the operation
};

/// Returns the operations together with their nops.
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
      Synchronizer synchronizer(plan, gpu, block, options.target == Target::mscclpp);
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
