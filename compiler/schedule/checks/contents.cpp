// This check requires that memory is written before it is read, and that outputs are complete at the end.

#include <fmt/format.h>

#include <algorithm>

#include "accesses.hpp"
#include "box_index.hpp"
#include "checks.hpp"
#include "compiler/schedule/report.hpp"

namespace chorale::schedule {
namespace {

/// Appends the part of a box that is outside another box to `rest`, as boxes.
void subtract(const Box& from, const Box& other, std::vector<Box>& rest) {
  if (!from.overlaps(other)) return rest.push_back(from);
  Box inner = from;
  for (size_t axis = 0; axis < inner.lo.size(); ++axis) {
    const uint64_t end = inner.lo[axis] + inner.extent[axis];
    const uint64_t first = std::max(inner.lo[axis], other.lo[axis]);
    const uint64_t last = std::min(end, other.lo[axis] + other.extent[axis]);
    const auto slab = [&](uint64_t lo, uint64_t extent) {
      if (extent == 0) return;
      Box& part = rest.emplace_back(inner);
      part.lo[axis] = lo;
      part.extent[axis] = extent;
    };
    slab(inner.lo[axis], first - inner.lo[axis]);
    slab(last, end - last);
    inner.lo[axis] = first;
    inner.extent[axis] = last - first;
  }
}

class Contents {
 public:
  Contents(const Schedule& schedule, const Concrete& made, Diagnostics& out)
      : s_(schedule), made_(made), order_(made, Queues::by_stream, 1), out_(out) {}

  void all() {
    const std::vector<std::vector<Access>> lists = accesses(made_, 1);
    for (size_t memory = 0; memory < lists.size(); ++memory) {
      const uint32_t tensor = uint32_t(memory % made_.tensors.size());
      const ConcreteTensor& of = made_.tensors[tensor];
      if (of.role == Role::in || of.bytes == 0) continue;
      const Writes writes(of, lists[memory]);
      for (const Access& access : lists[memory]) {
        if (access.writes) continue;
        const std::vector<Box> rest = unwritten(access, writes);
        if (rest.empty()) continue;
        if (of.role == Role::temp && of.zero)
          stays_zero(access, rest, writes);
        else
          read(access, rest[0]);
      }
      if (of.role == Role::out) end(uint32_t(memory / made_.tensors.size()), tensor, writes);
    }
  }

 private:
  /// Finds the accesses that write a piece of memory, in order.
  struct Writes {
    Writes(const ConcreteTensor& tensor, const std::vector<Access>& of) : list(of), index(tensor) {
      for (size_t one = 0; one < list.size(); ++one)
        if (list[one].writes) index.add(*list[one].box, one);
      index.build();
    }
    const std::vector<Access>& list;  ///< also has the reads of the memory
    BoxIndex index;
  };

  /// Returns the parts of a box that no access for which `counts` returns true writes.
  template <class F>
  std::vector<Box> missing(const Box& box, const Writes& writes, const F& counts) const {
    std::vector<Box> rest = {box};
    for (const size_t one : writes.index.near(box)) {
      if (rest.empty()) break;
      const Access& access = writes.list[one];
      if (!counts(access)) continue;
      std::vector<Box> left;
      for (const Box& part : rest) subtract(part, *access.box, left);
      rest = std::move(left);
    }
    return rest;
  }

  /// Returns the parts that an access reads although nothing has written them before.
  std::vector<Box> unwritten(const Access& access, const Writes& writes) const {
    return missing(*access.box, writes,
                   [&](const Access& write) { return order_.before(write.event, access.event); });
  }

  std::string place(const Access& access) const {
    return where(access.event.rank, made_.steps[access.event.rank][access.event.step]);
  }

  void read(const Access& access, const Box& rest) {
    report(out_, s_, "contents", access.at,
           fmt::format("this reads {} of rank {} on {}, but nothing has written {} before",
                       text(made_, *access.box), access.rank, place(access), text(made_, rest)),
           "write it in the same run, or let the temporary be zero when the schedule is bound");
  }

  bool makes_zero(const Access& write) const {
    const Step& step = made_.steps[write.event.rank][write.event.step];
    if (step.kind == StepKind::fill) return step.value == 0;
    const auto value = step.attributes.find("value");
    return step.kind == StepKind::call && (step.name == "zero" || step.name == "fill") &&
           (value == step.attributes.end() || value->second == 0) && !function_of(s_, step);
  }

  /// Reports a read of a temporary that is zero only in the first run. A temporary is set to zero when the
  /// schedule is bound, not in each run. If a run writes there and does not set it to zero again, the next
  /// run reads what was written.
  void stays_zero(const Access& access, const std::vector<Box>& rest, const Writes& writes) {
    for (const Access& write : writes.list) {
      if (!write.writes || makes_zero(write)) continue;
      const std::vector<Box> left = missing(*write.box, writes, [&](const Access& other) {
        return makes_zero(other) && order_.before(write.event, other.event);
      });
      for (const Box& one : left) {
        const auto overlapping =
            std::find_if(rest.begin(), rest.end(), [&](const Box& of) { return of.overlaps(one); });
        if (overlapping == rest.end()) continue;
        Diagnostic* finding = report(
            out_, s_, "contents", access.at,
            fmt::format("this reads {} of rank {} on {}, but {} is zero in the first run only",
                        text(made_, *access.box), access.rank, place(access), text(made_, *overlapping)),
            "make it zero in the same run, before it is read or after it is overwritten");
        note(finding, s_, write.at, fmt::format("what the next run reads, from {}", place(write)));
        return;
      }
    }
  }

  void end(uint32_t rank, uint32_t tensor, const Writes& writes) {
    const ConcreteTensor& of = made_.tensors[tensor];
    Box whole{.tensor = tensor,
              .lo = std::vector<uint64_t>(of.shape.size()),
              .extent = of.shape,
              .shape = {},
              .strides = {}};
    whole.bytes = of.bytes;
    const std::vector<Box> rest = missing(whole, writes, [](const Access&) { return true; });
    if (rest.empty()) return;
    report(out_, s_, "contents", s_.tensors[tensor].at,
           fmt::format("nothing writes {} of output '{}' on rank {}", text(made_, rest[0]), of.name, rank));
  }

  const Schedule& s_;
  const Concrete& made_;
  Execution order_;
  Diagnostics& out_;
};

}  // namespace

void check_contents(const Schedule& schedule, const Concrete&, const Concrete& expanded, Diagnostics& out) {
  Contents(schedule, expanded, out).all();
}

}  // namespace chorale::schedule
