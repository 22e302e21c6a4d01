// This file decides what must be transferred. If an operand is spread over the ranks in another way than the
// result, it inserts a `set` before the operation, or after it.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/schedule/report.hpp"
#include "layout.hpp"

namespace chorale::schedule {
namespace {

class Resharder {
 public:
  Resharder(Schedule& schedule, const Lowering& options, Diagnostics& out)
      : s_(schedule), options_(options), out_(out), ranks_(s_.exprs.symbol("ranks")) {}

  std::vector<Item> all() {
    for (const Op& op : std::vector<Op>(s_.layout)) one(op);
    return std::move(items_);
  }

 private:
  const Tensor& tensor(uint32_t position) const { return s_.tensors[position]; }
  const Tensor& result(const Op& op) const { return tensor(op.writes[0].tensor); }
  const Tensor& operand(const Op& op, size_t k) const { return tensor(op.reads[k].tensor); }
  bool by_collectives(Form form) const { return options_.form == form || options_.form == Form::collective; }

  void say(const Op& op, std::string text, std::string help = {}) {
    report(out_, s_, "tags", op.at, std::move(text), std::move(help));
  }

  uint32_t temporary(const Op& of, uint32_t like, std::vector<Axis> axes, const char* suffix) {
    std::string name = tensor(like).name + suffix;
    for (int number = 2; s_.find_tensor(name) < s_.tensors.size(); ++number)
      name = fmt::format("{}{}{}", tensor(like).name, suffix, number);
    s_.tensors.push_back({.name = name,
                          .dtype = tensor(like).dtype,
                          .axes = std::move(axes),
                          .role = Role::temp,
                          .space = Space::local,
                          .zero = false,
                          .at = of.at});
    return uint32_t(s_.tensors.size() - 1);
  }
  static Op movement(const Op& of, uint32_t to, uint32_t from) {
    Op op;
    op.kind = OpKind::compute;
    op.name = "set";
    op.writes = {{to, {}}};
    op.reads = {{from, {}}};
    op.at = of.at;
    return op;
  }

  /// Adds an operation that runs slice by slice along axis `sliced` of its result, or as a whole for no_axis.
  Item& add(const Op& op, Action action, int sliced) {
    Item item;
    item.op = op;
    item.action = action;
    item.sliced = sliced;
    for (size_t k = 0; k < op.reads.size(); ++k) {
      item.axes.push_back(axes_of_operand(s_, op, k));
      const std::vector<int>& axes = item.axes.back();
      const auto same = std::find(axes.begin(), axes.end(), sliced);
      item.sliced_of_operand.push_back(sliced == no_axis || same == axes.end() ? no_axis
                                                                               : int(same - axes.begin()));
    }
    if (sliced != no_axis) {
      item.loops = true;
      item.turns = result(op).axes[size_t(sliced)].extent;
    }
    items_.push_back(std::move(item));
    return items_.back();
  }

  void one(const Op& op) {
    if (op.name == "set") return set(op);
    if (op.name == "sum" && sums_over_ranks(op)) return sum(op);
    compute(op);
  }

  bool sums_over_ranks(const Op& op) const {
    const std::vector<int> axes = axes_of_operand(s_, op, 0);
    const int spread = tagged(operand(op, 0), Tag::ranks);
    return spread != no_axis && axes[size_t(spread)] == no_axis;
  }

  /// Adds an operation that each rank does alone, after all operands are where the result is.
  void compute(Op op) {
    const int streams = tagged(result(op), Tag::streams);
    for (size_t k = 0; k < op.reads.size(); ++k) {
      const int spread = tagged(operand(op, k), Tag::ranks);
      if (spread == no_axis) continue;
      const std::vector<int> axes = axes_of_operand(s_, op, k);
      const int there = axes[size_t(spread)];
      if (result(op).axes[size_t(there)].tag == Tag::ranks) continue;
      if (options_.reshard == Reshard::after && can_follow(op, k, there)) {
        std::vector<Axis> axes_of_part = result(op).axes;
        axes_of_part[size_t(there)].tag = Tag::ranks;
        const uint32_t whole = op.writes[0].tensor;
        op.writes = {{temporary(op, whole, axes_of_part, "_part"), {}}};
        one(op);
        return set(movement(op, whole, op.writes[0].tensor));
      }
      // The operand's axis gets the spread of the result. Slices of other axes are those of the result, too.
      std::vector<Axis> everywhere = operand(op, k).axes;
      for (Axis& axis : everywhere) axis.tag = Tag::whole;
      for (size_t axis = 0; axis < everywhere.size(); ++axis) {
        if (int(axis) == spread) everywhere[axis].tag = result(op).axes[size_t(there)].tag;
        const bool slices =
            streams != no_axis && axes[axis] == streams && !is_one(s_, everywhere[axis].extent);
        if (slices) everywhere[axis].tag = Tag::streams;
      }
      const uint32_t from = op.reads[k].tensor;
      op.reads[k] = {temporary(op, from, everywhere, "_gathered"), {}};
      set(movement(op, op.reads[k].tensor, from));
    }
    add(op, Action::compute, streams);
  }

  /// Returns whether the operation can run where operand `k` is, which requires that no other operand is
  /// spread in a third way.
  bool can_follow(const Op& op, size_t k, int there) const {
    if (tagged(result(op), Tag::ranks) != no_axis) return false;
    for (size_t other = 0; other < op.reads.size(); ++other) {
      const int spread = tagged(operand(op, other), Tag::ranks);
      if (other != k && spread != no_axis && axes_of_operand(s_, op, other)[size_t(spread)] != there)
        return false;
    }
    return true;
  }

  void set(const Op& op) {
    const Tensor &in = operand(op, 0), &out = result(op);
    const int from = tagged(in, Tag::ranks), to = tagged(out, Tag::ranks),
              streams = tagged(out, Tag::streams);
    if (from == no_axis || from == to) return void(add(op, Action::compute, streams));
    if (to != no_axis) return exchange(op, from, to);
    if (streams == from) return of_all_ranks(op, from) ? void(add(op, Action::gather, from)) : void();
    // The result is whole on every rank, either at once or slice by slice along another axis.
    for (int axis = 0; axis < from; ++axis) {
      if (axis == streams || is_one(s_, out.axes[size_t(axis)].extent)) continue;
      return say(op,
                 fmt::format("axis {} of '{}' is gathered from the ranks after axis {}, which is whole", from,
                             out.name, axis),
                 fmt::format("put axis {} in front, or spread it over streams", from));
    }
    add(op, Action::collective, streams).collective = "allgather";
  }

  /// Adds an exchange. The operand is spread along axis `from`, the result along axis `to`.
  void exchange(const Op& op, int from, int to) {
    const int streams = tagged(result(op), Tag::streams);
    if (streams != no_axis && streams != from)
      return say(
          op,
          fmt::format(
              "'{}' is over ranks along axis {} and over streams along axis {}, but '{}' is over ranks along "
              "axis {}",
              result(op).name, to, streams, operand(op, 0).name, from),
          fmt::format("spread axis {} of '{}' over streams: each turn brings one slice of it", from,
                      result(op).name));
    if (!of_all_ranks(op, from)) return;
    Item& item = add(op, Action::exchange, from);
    item.sliced_of_operand = {to};
  }

  bool of_all_ranks(const Op& op, int axis) {
    const Axis& sliced = result(op).axes[size_t(axis)];
    if (sliced.extent == ranks_) return true;
    say(op,
        fmt::format("axis {} of '{}' comes from the ranks, but is {}", axis, result(op).name,
                    text(s_.exprs, sliced.extent)),
        "an axis over ranks has the extent ranks: split it in two, [ranks, extent / ranks]");
    return false;
  }

  /// Adds a sum over the ranks, each of which has one addend.
  void sum(const Op& op) {
    const uint32_t from = op.reads[0].tensor;
    const int gone = tagged(operand(op, 0), Tag::ranks), to = tagged(result(op), Tag::ranks),
              streams = tagged(result(op), Tag::streams);
    const auto in_operand = [&](int axis) { return axis + (axis >= gone); };
    if (to == no_axis && streams == no_axis)
      return void(add(op, Action::collective, no_axis).collective = "allreduce");
    if (to == no_axis) {
      if (options_.form == Form::collective || result(op).axes[size_t(streams)].extent != ranks_)
        return void(add(op, Action::collective, streams).collective = "allreduce");
      // Each rank sums its slice and sends it to all others.
      std::vector<Axis> mine = result(op).axes;
      mine[size_t(streams)].tag = Tag::ranks;
      Op part = op;
      part.writes = {{temporary(op, op.writes[0].tensor, mine, "_sum"), {}}};
      sum(part);
      return set(movement(op, op.writes[0].tensor, part.writes[0].tensor));
    }
    if (streams != no_axis) {
      for (int axis = 0; axis < to; ++axis) {
        if (axis == streams || is_one(s_, result(op).axes[size_t(axis)].extent)) continue;
        return say(op,
                   fmt::format("axis {} of '{}' is scattered over the ranks after axis {}, which is whole",
                               to, result(op).name, axis),
                   fmt::format("put axis {} in front", to));
      }
      return void(add(op, Action::collective, streams).collective = "reducescatter");
    }
    const int scattered = in_operand(to);
    if (by_collectives(Form::reduce)) {
      Item& item = add(op, Action::collective, no_axis);
      item.collective = "reduce";
      item.loops = true;
      item.turns = ranks_;
      item.sliced_of_operand = {scattered};
      return;
    }
    if (options_.order == Order::ring) {
      std::vector<Axis> slices = result(op).axes;
      slices[size_t(to)].tag = Tag::streams;
      const uint32_t sums = temporary(op, op.writes[0].tensor, slices, "_sums");
      Item& item = add(op, Action::ring_sum, no_axis);
      item.loops = true;
      item.turns = ranks_;
      item.sliced_of_operand = {scattered};
      item.sums = sums;
      return;
    }
    // The addends of a slice go to the rank that has the slice in the result.
    std::vector<Axis> mine = operand(op, 0).axes;
    mine[size_t(gone)].tag = Tag::streams;
    mine[size_t(scattered)].tag = Tag::ranks;
    Op rest = op;
    rest.reads = {{temporary(op, from, mine, "_addends"), {}}};
    set(movement(op, rest.reads[0].tensor, from));
    add(rest, Action::compute, no_axis);
  }

  Schedule& s_;
  const Lowering& options_;
  Diagnostics& out_;
  const Expr ranks_;
  std::vector<Item> items_;
};

}  // namespace

std::vector<Item> reshard(Schedule& schedule, const Lowering& options, Diagnostics& findings) {
  return Resharder(schedule, options, findings).all();
}

}  // namespace chorale::schedule
