// This check requires results to be what the layout says, or the tensors of an all-gather. It follows
// contents through every copy, transfer and call, as sums of products of parts of the inputs, and compares
// them.
//
// There are no races at this point, so one order of execution stands for all. It uses the order in which the
// host enqueues.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "algebra.hpp"
#include "checks.hpp"
#include "chorale/schedule/builtins.hpp"
#include "compiler/schedule/lower/layout.hpp"
#include "compiler/schedule/report.hpp"

namespace chorale::schedule {
namespace {

/// Returns whether the result of a function is known. The results of the application's functions and of plans
/// are unknown, so they only get distinct names.
bool is_known(const std::string& function) {
  return function == "add" || function == "sum" || function == "matmul" || function == "linear";
}

/// Names the input and the output of a schedule that is an all-gather according to its tensors. There are no
/// other inputs and outputs, the outermost axis is over ranks in the input and over streams in the output,
/// the tensors are alike otherwise, and nothing is computed or launched.
struct Gathered {
  uint32_t in = 0, out = 0;
};
std::optional<Gathered> allgather_of(const Schedule& schedule, const Concrete& made) {
  std::optional<uint32_t> in, out;
  for (uint32_t tensor = 0; tensor < schedule.tensors.size(); ++tensor) {
    const Role role = schedule.tensors[tensor].role;
    if (role == Role::temp) continue;
    std::optional<uint32_t>& which = role == Role::in ? in : out;
    if (which) return {};
    which = tensor;
  }
  if (!in || !out) return {};
  const auto computes = [](const Step& step) {
    return step.kind == StepKind::call || step.kind == StepKind::fill || step.kind == StepKind::launch;
  };
  for (const std::vector<Step>& steps : made.steps)
    if (std::any_of(steps.begin(), steps.end(), computes)) return {};
  const Tensor &from = schedule.tensors[*in], &to = schedule.tensors[*out];
  const bool spread = !from.axes.empty() && from.axes[0].tag == Tag::ranks;
  const bool whole = !to.axes.empty() && to.axes[0].tag == Tag::streams;
  if (!spread || !whole) return {};
  std::vector<uint64_t> gathered = made.tensors[*in].shape;
  gathered[0] = made.ranks;
  if (gathered != made.tensors[*out].shape || from.dtype != to.dtype) return {};
  return Gathered{*in, *out};
}

class Results {
 public:
  /// \param is_written  true if the author has written the body, so that its tensors say what the layout is
  Results(const Schedule& schedule, const Concrete& made, bool is_written, Diagnostics& out)
      : s_(schedule), made_(made), is_written_(is_written), out_(out), cells_(schedule, made) {}

  void all() {
    begin();
    if (!run()) return;  // [deadlock] reports a run that does not end
    compare();
  }

 private:
  std::vector<Content>& of(uint32_t rank, uint32_t tensor) {
    return now_[rank * made_.tensors.size() + tensor];
  }

  std::string name(uint32_t rank, uint32_t tensor, const Cells::Index& index) const {
    const bool spread = tagged(s_.tensors[tensor], Tag::ranks) != no_axis;
    return text(made_, cells_.box(tensor, index)) + (spread ? fmt::format(" of rank {}", rank) : "");
  }

  void begin() {
    now_.resize(made_.ranks * made_.tensors.size());
    for (uint32_t rank = 0; rank < made_.ranks; ++rank) {
      for (uint32_t tensor = 0; tensor < made_.tensors.size(); ++tensor) {
        std::vector<Content>& contents = of(rank, tensor);
        contents.assign(cells_.count(tensor), made_.tensors[tensor].zero ? algebra_.zero() : Algebra::none);
        if (made_.tensors[tensor].role != Role::in) continue;
        each_index(cells_.extents(tensor), [&](const Cells::Index& index) {
          contents[cells_.position(tensor, index)] = algebra_.atom(name(rank, tensor, index));
        });
      }
    }
  }

  // -- The schedule

  bool run() {
    std::vector<size_t> next(made_.ranks);
    std::vector<uint32_t> posts(made_.flags.size()), ends(made_.pairs.size());
    std::vector<bool> come(made_.ranks);
    for (bool moved = true; moved;) {
      moved = false;
      for (uint32_t rank = 0; rank < made_.ranks; ++rank) {
        for (; next[rank] < made_.steps[rank].size(); ++next[rank], come[rank] = false, moved = true) {
          const Step& step = made_.steps[rank][next[rank]];
          if (step.kind == StepKind::post) ++posts[step.flag];
          if (step.kind == StepKind::take) {
            if (posts[step.flag] == 0) break;
            --posts[step.flag];
          }
          if (step.kind == StepKind::exchange) {
            for (const ConcreteTransfer& one : step.transfers)
              if (!come[rank] && ++ends[one.pair] == 2) transfer(made_.pairs[one.pair]), moved = true;
            come[rank] = true;
            const auto open = [&](const ConcreteTransfer& one) { return ends[one.pair] < 2; };
            if (std::any_of(step.transfers.begin(), step.transfers.end(), open)) break;
          }
          one(rank, step);
        }
      }
    }
    for (uint32_t rank = 0; rank < made_.ranks; ++rank)
      if (next[rank] < made_.steps[rank].size()) return false;
    return true;
  }

  void one(uint32_t rank, const Step& step) {
    const uint32_t from = step.kind == StepKind::get ? step.peer : rank,
                   to = step.kind == StepKind::put ? step.peer : rank;
    switch (step.kind) {
      case StepKind::copy:
      case StepKind::put:
      case StepKind::get:
        return copy(to, step.writes[0], from, step.reads[0]);
      case StepKind::fill:
        return set(rank, step.writes[0],
                   step.value ? algebra_.atom(fmt::format("{}", step.value)) : algebra_.zero());
      case StepKind::call:
        if (function_of(s_, step)) return unknown(rank, step);
        if (step.name == "zero") return set(rank, step.writes[0], algebra_.zero());
        if (step.name == "cast") return copy(rank, step.writes[0], rank, step.reads[0]);
        return is_known(step.name) ? call(rank, step) : unknown(rank, step);
      case StepKind::launch:
        return unknown(rank, step);
      default:
        return;
    }
  }

  template <class Body>
  void each_cell(const Box& box, const Body& body) {
    const auto range = cells_.range(box);
    Cells::Index extents, index(range.size());
    for (const auto& [first, count] : range) extents.push_back(count);
    each_index(extents, [&](const Cells::Index& within) {
      for (size_t axis = 0; axis < within.size(); ++axis) index[axis] = range[axis].first + within[axis];
      body(within, index);
    });
  }

  void set(uint32_t rank, const Box& box, Content content) {
    each_cell(box, [&](const Cells::Index&, const Cells::Index& index) {
      of(rank, box.tensor)[cells_.position(box.tensor, index)] = content;
    });
  }

  std::vector<Content> contents_of(uint32_t rank, const Box& box) {
    std::vector<Content> list;
    each_cell(box, [&](const Cells::Index&, const Cells::Index& index) {
      list.push_back(of(rank, box.tensor)[cells_.position(box.tensor, index)]);
    });
    return list;
  }

  /// Copies contents. The cells of both sides correspond. If extents differ, a cell is known only as a part
  /// of the whole.
  void copy(uint32_t to, const Box& dst, uint32_t from, const Box& src) {
    const std::vector<Content> list = contents_of(from, src);
    size_t cells = 0, next = 0;
    each_cell(dst, [&](const Cells::Index&, const Cells::Index&) { ++cells; });
    const bool alike = cells == list.size();
    const std::string all = alike ? "" : fmt::format("another shape of {}", fmt::join(list, ","));
    each_cell(dst, [&](const Cells::Index&, const Cells::Index& index) {
      of(to, dst.tensor)[cells_.position(dst.tensor, index)] =
          alike ? list[next] : algebra_.atom(fmt::format("{} at {}", all, next));
      ++next;
    });
  }
  void transfer(const Pair& pair) {
    const auto box = [&](const Pair::End& end) -> const Box& {
      return made_.steps[end.rank][end.step].transfers[end.transfer].box;
    };
    copy(pair.recv.rank, box(pair.recv), pair.send.rank, box(pair.send));
  }

  /// Returns the cells of a box along the axes that a function sees.
  ReadCells operand(uint32_t rank, const Box& box) {
    const auto range = cells_.range(box);
    const std::vector<size_t> axes = visible(made_, box);
    ReadCells made;
    for (const size_t axis : axes) made.extents.push_back(range[axis].second);
    made.at = [this, rank, &box, range, axes](const Cells::Index& index) {
      Cells::Index own;
      for (const auto& [first, count] : range) own.push_back(first);
      for (size_t k = 0; k < axes.size(); ++k) own[axes[k]] += index[k];
      return of(rank, box.tensor)[cells_.position(box.tensor, own)];
    };
    return made;
  }

  void call(uint32_t rank, const Step& step) {
    std::vector<ReadCells> operands;
    for (const Box& read : step.reads) operands.push_back(operand(rank, read));
    const ReadCells result = operand(rank, step.writes[0]);
    const int64_t axis = summed_axis(step.attributes);
    // If an operand is cut in another way than the result, its cells do not correspond to those of the
    // result.
    if (!alike(step.name, axis, result.extents, operands)) return unknown(rank, step);
    std::vector<Content> made;
    each_index(result.extents, [&](const Cells::Index& index) {
      made.push_back(computed(algebra_, step.name, axis, index, operands));
    });
    size_t next = 0;
    each_cell(step.writes[0], [&](const Cells::Index&, const Cells::Index& index) {
      of(rank, step.writes[0].tensor)[cells_.position(step.writes[0].tensor, index)] = made[next++];
    });
  }

  void unknown(uint32_t rank, const Step& step) {
    std::string all = step.name;
    for (const auto& [word, value] : step.attributes) all += fmt::format(" {}={}", word, value);
    for (const Box& read : step.reads) all += fmt::format(" of {}", fmt::join(contents_of(rank, read), ","));
    for (size_t k = 0; k < step.writes.size(); ++k) {
      size_t next = 0;
      each_cell(step.writes[k], [&](const Cells::Index&, const Cells::Index& index) {
        of(rank, step.writes[k].tensor)[cells_.position(step.writes[k].tensor, index)] =
            algebra_.atom(fmt::format("{} at {}.{}", all, k, next++));
      });
    }
  }

  // -- The layout

  /// Holds the contents of all ranks together, by cell. An axis over ranks has one cell per rank.
  struct Whole {
    Cells::Index extents;
    std::vector<Content> contents;
    Content& at(const Cells::Index& index) {
      size_t position = 0;
      for (size_t axis = 0; axis < index.size(); ++axis) position = position * extents[axis] + index[axis];
      return contents[position];
    }
  };

  Whole whole(uint32_t tensor) {
    Whole made;
    made.extents = cells_.extents(tensor);
    const int spread = tagged(s_.tensors[tensor], Tag::ranks);
    if (spread != no_axis) made.extents[size_t(spread)] = made_.ranks;
    size_t count = 1;
    for (const size_t extent : made.extents) count *= extent;
    made.contents.resize(count);
    if (s_.tensors[tensor].role == Role::in) {
      each_index(made.extents, [&](const Cells::Index& index) {
        Cells::Index own = index;
        const uint32_t rank = spread == no_axis ? 0 : uint32_t(index[size_t(spread)]);
        if (spread != no_axis) own[size_t(spread)] = 0;
        made.at(index) = algebra_.atom(name(rank, tensor, own));
      });
    }
    return made;
  }

  void compare() {
    std::vector<Whole> wholes;
    for (uint32_t tensor = 0; tensor < s_.tensors.size(); ++tensor) wholes.push_back(whole(tensor));
    for (const Op& op : s_.layout) {
      std::vector<ReadCells> operands;
      for (const View& read : op.reads) {
        Whole& from = wholes[read.tensor];
        operands.push_back({from.extents, [&from](const Cells::Index& index) { return from.at(index); }});
      }
      const auto axis = op.attributes.find("axis");
      const int64_t summed = axis == op.attributes.end() ? 0 : evaluate(s_.exprs, axis->second, {}).value;
      Whole& result = wholes[op.writes[0].tensor];
      if (!alike(op.name, summed, result.extents, operands)) {
        report(out_, s_, "result", op.at,
               fmt::format("the extents of the operands of '{}' do not fit those of '{}'", op.name,
                           s_.tensors[op.writes[0].tensor].name),
               "see its operations in the body, which have to fit");
        return;
      }
      each_index(result.extents, [&](const Cells::Index& index) {
        result.at(index) = computed(algebra_, op.name, summed, index, operands);
      });
      if (s_.tensors[op.writes[0].tensor].role == Role::out) compare(op, result);
    }
  }

  void compare(const Op& op, Whole& expected) {
    const uint32_t tensor = op.writes[0].tensor;
    const int spread = tagged(s_.tensors[tensor], Tag::ranks);
    for (uint32_t rank = 0; rank < made_.ranks; ++rank) {
      each_index(cells_.extents(tensor), [&](const Cells::Index& index) {
        Cells::Index all = index;
        if (spread != no_axis) all[size_t(spread)] = rank;
        const Content wanted = expected.at(all), found = of(rank, tensor)[cells_.position(tensor, index)];
        if (wanted == found) return;
        const std::string place = fmt::format("{} of rank {}", text(made_, cells_.box(tensor, index)), rank);
        const std::string what = is_written_ ? "all-gather that its tensors say" : op.name + " of the layout";
        const std::string missing = algebra_.difference(wanted, found),
                          surplus = algebra_.difference(found, wanted);
        Diagnostic* finding = report(
            out_, s_, "result", op.at,
            !missing.empty() ? fmt::format("{} is not the {}: {} is missing from it", place, what, missing)
            : !surplus.empty()
                ? fmt::format("{} is not the {}: {} does not belong in it", place, what, surplus)
                : fmt::format("{} is not the {}, although it uses the same inputs", place, what),
            is_written_ ? "put the slice of each rank at its place, or say with the tensors' axes what it is"
                        : "lower the layout again: the schedule is not what the compiler makes of it");
        if (is_written_) name_writer(finding, rank, cells_.box(tensor, index));
      });
    }
  }

  /// Adds to a finding the author's line that last wrote this memory of a rank.
  void name_writer(Diagnostic* finding, uint32_t rank, Box box) {
    box.bytes = 1;  // overlaps() only needs to see that it has elements
    for (uint32_t by = 0; finding && by < made_.ranks; ++by) {
      for (size_t at = made_.steps[by].size(); at-- > 0;) {
        const Step& step = made_.steps[by][at];
        const uint32_t to = step.kind == StepKind::put ? step.peer : by;
        const auto hits = [&](const Box& written) { return to == rank && written.overlaps(box); };
        const auto receives = [&](const ConcreteTransfer& one) { return !one.is_send && hits(one.box); };
        if (std::none_of(step.writes.begin(), step.writes.end(), hits) &&
            std::none_of(step.transfers.begin(), step.transfers.end(), receives))
          continue;
        return note(finding, s_, step.at, fmt::format("it was last written on {}", where(by, step)));
      }
    }
  }

  const Schedule& s_;
  const Concrete& made_;
  const bool is_written_;
  Diagnostics& out_;
  const Cells cells_;
  Algebra algebra_;
  std::vector<std::vector<Content>> now_;  // by rank and tensor, by cell
};

}  // namespace

void check_result(const Schedule& schedule, const Concrete& made, const Concrete& expanded,
                  Diagnostics& out) {
  if (!schedule.layout.empty()) return Results(schedule, expanded, false, out).all();
  const std::optional<Gathered> gathered = allgather_of(schedule, made);
  if (!gathered) return;  // nothing says what the results should be
  Schedule with_layout = schedule;
  Op& set = with_layout.layout.emplace_back();
  set.kind = OpKind::compute;
  set.name = "set";
  set.writes = {View{gathered->out, {}}};
  set.reads = {View{gathered->in, {}}};
  set.at = schedule.tensors[gathered->out].at;
  Results(with_layout, expanded, true, out).all();
}

}  // namespace chorale::schedule
