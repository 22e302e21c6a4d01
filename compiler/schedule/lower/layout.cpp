// This file reads a layout. It finds the axes of its operations, and reports what is wrong with it.

#include "layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "chorale/did_you_mean.hpp"
#include "compiler/schedule/report.hpp"

namespace chorale::schedule {
namespace {

/// Returns the axis that `sum` sums over, or no_axis.
int summed(const Schedule& s, const Op& op) {
  const auto axis = op.attributes.find("axis");
  if (axis == op.attributes.end()) return no_axis;
  const Evaluated value = evaluate(s.exprs, axis->second, {});
  return value ? int(value.value) : no_axis;
}

}  // namespace

int tagged(const Tensor& tensor, Tag tag) {
  for (size_t axis = 0; axis < tensor.axes.size(); ++axis)
    if (tensor.axes[axis].tag == tag) return int(axis);
  return no_axis;
}

bool is_one(const Schedule& s, Expr expr) {
  return s.exprs[expr].kind == ExprKind::constant && s.exprs[expr].value == 1;
}

bool is_product(const Op& op) { return op.name == "matmul" || op.name == "linear"; }

bool is_matrix_axis(const Schedule& s, const Op& op, int axis) {
  return is_product(op) && axis + 2 >= int(s.tensors[op.writes[0].tensor].axes.size());
}

std::vector<int> axes_of_operand(const Schedule& s, const Op& op, size_t operand) {
  const int out = int(s.tensors[op.writes[0].tensor].axes.size());
  const int in = int(s.tensors[op.reads[operand].tensor].axes.size());
  std::vector<int> axes;
  for (int axis = 0; axis < in; ++axis) axes.push_back(axis);
  if (op.name == "sum") {
    const int gone = summed(s, op);
    for (int axis = 0; axis < in; ++axis) axes[size_t(axis)] = axis == gone ? no_axis : axis - (axis > gone);
  }
  if (!is_product(op)) return axes;
  const int rows = out - 2, columns = out - 1;
  if (operand == 0) {  // [batches, m, k]
    axes.back() = no_axis;
  } else if (operand == 2) {  // [batches, n]
    axes.back() = columns;
  } else {  // matmul [batches, k, n], linear [batches, n, k]
    const bool transposed = op.name == "linear";
    axes[size_t(in - 2)] = transposed ? columns : no_axis;
    axes[size_t(in - 1)] = transposed ? no_axis : columns;
  }
  if (operand == 0) axes[size_t(in - 2)] = rows;
  return axes;
}

namespace {

class Checker {
 public:
  Checker(const Schedule& schedule, Diagnostics& out) : s_(schedule), out_(out) {}

  void all() {
    for (const Tensor& one : s_.tensors) tensor(one);
    for (const Op& op : s_.layout) one(op);
    for (uint32_t k = 0; k < s_.tensors.size(); ++k) {
      if (s_.tensors[k].role == Role::out && !made_.count(k))
        say(s_.tensors[k].at, fmt::format("nothing computes the result '{}'", s_.tensors[k].name),
            "compute it, or leave it out");
    }
  }

 private:
  void say(uint32_t at, std::string text, std::string help = {}) {
    report(out_, s_, "tags", at, std::move(text), std::move(help));
  }
  const Tensor& tensor_of(const View& view) const { return s_.tensors[view.tensor]; }
  std::string extent(Expr expr) const { return text(s_.exprs, expr); }
  std::string shape(const Tensor& tensor) const {
    std::vector<std::string> extents;
    for (const Axis& axis : tensor.axes) extents.push_back(extent(axis.extent));
    return fmt::format("{}[{}]", tensor.name, fmt::join(extents, ", "));
  }

  static const char* noun(Tag tag) { return tag == Tag::ranks ? "ranks" : "streams"; }

  void tensor(const Tensor& tensor) {
    for (const Tag tag : {Tag::ranks, Tag::streams}) {
      const int first = tagged(tensor, tag);
      for (int axis = first + 1; first != no_axis && axis < int(tensor.axes.size()); ++axis) {
        if (tensor.axes[size_t(axis)].tag != tag) continue;
        say(tensor.at,
            fmt::format("axes {} and {} of '{}' are both over {}", first, axis, tensor.name, noun(tag)),
            fmt::format("leave one of them over {}", noun(tag)));
      }
    }
  }

  void one(const Op& op) {
    if (op.kind != OpKind::compute)
      return say(op.at, fmt::format("'{}' belongs to the explicit form, not to a layout", info(op.kind).name),
                 "write functions of whole tensors");
    const auto& known = layout_functions;
    if (std::find(std::begin(known), std::end(known), op.name) == std::end(known))
      return say(op.at,
                 fmt::format("the layout form has no function '{}', {}", op.name,
                             fmt::format("only {}{}", fmt::join(known, ", "), did_you_mean(op.name, known))),
                 "write the explicit form, in which streams call functions of the application");
    if (!operands(op)) {
      if (op.writes.size() == 1)
        made_.emplace(op.writes[0].tensor, op.at);  // so that operations that read it do not report it again
      return;
    }
    for (const View& read : op.reads) {
      if (tensor_of(read).role != Role::in && !made_.count(read.tensor))
        say(op.at, fmt::format("'{}' is read before anything computes it", tensor_of(read).name),
            "compute it first, or make it an input");
    }
    const uint32_t result = op.writes[0].tensor;
    if (s_.tensors[result].role == Role::in)
      say(op.at, fmt::format("'{}' is an input, and cannot be computed", s_.tensors[result].name),
          "compute an output or a temporary");
    const auto [before, is_new] = made_.emplace(result, op.at);
    if (!is_new)
      note(report(out_, s_, "tags", op.at, fmt::format("'{}' is computed twice", s_.tensors[result].name),
                  "compute a temporary and add the two"),
           s_, before->second, "here, too");
    extents(op);
  }

  /// Checks the number of operands, that all of them are whole tensors, and that they have as many axes as
  /// the function needs.
  bool operands(const Op& op) {
    struct Numbers {
      std::string_view name;
      size_t least, most;
    };
    constexpr Numbers numbers[] = {
        {"set", 1, 1}, {"matmul", 2, 2}, {"linear", 2, 3}, {"add", 2, 2}, {"sum", 1, 1}};
    const Numbers& wanted = *std::find_if(std::begin(numbers), std::end(numbers),
                                          [&](const Numbers& one) { return one.name == op.name; });
    if (op.writes.size() != 1 || op.reads.size() < wanted.least || op.reads.size() > wanted.most) {
      say(op.at, fmt::format("'{}' has {} results and {} operands, but takes 1 and {}{}", op.name,
                             op.writes.size(), op.reads.size(), wanted.least,
                             wanted.most == wanted.least ? "" : fmt::format(" or {}", wanted.most)));
      return false;
    }
    for (const auto* list : {&op.writes, &op.reads}) {
      for (const View& view : *list) {
        if (view.selects.empty()) continue;
        say(op.at,
            fmt::format("'{}' works on whole tensors, but '{}' is a part", op.name, tensor_of(view).name),
            "make the part a tensor of its own, or write the explicit form");
        return false;
      }
    }
    return fits(op);
  }

  bool fits(const Op& op) {
    const Tensor& out = tensor_of(op.writes[0]);
    const size_t axes = out.axes.size();
    const auto bad = [&](const Tensor& in, const char* why, std::string help) {
      say(op.at, fmt::format("'{}' of {} to {}: {}", op.name, shape(in), shape(out), why), std::move(help));
      return false;
    };
    if (op.name == "sum") {
      const Tensor& in = tensor_of(op.reads[0]);
      const int axis = summed(s_, op);
      if (axis < 0 || axis >= int(in.axes.size()))
        return bad(in, "the operand has no such axis to sum over",
                   fmt::format("axes are counted from 0 to {}", int(in.axes.size()) - 1));
      return axes + 1 == in.axes.size() || bad(in, "the result has one axis less than the operand",
                                               "leave out the axis that is summed over");
    }
    const bool product = is_product(op);
    if (product && axes < 2)
      return bad(tensor_of(op.reads[0]), "matrices have two axes or more",
                 "put an axis of extent 1 in front");
    for (size_t k = 0; k < op.reads.size(); ++k) {
      const Tensor& in = tensor_of(op.reads[k]);
      const bool whole = in.axes.size() == axes;
      if (product && k == 1 && (whole || in.axes.size() == 2)) continue;
      if (product && k == 2 && (in.axes.size() + 1 == axes || in.axes.size() == 1)) continue;
      if ((!product || k == 0) && whole) continue;
      return bad(in, "the number of axes does not fit",
                 product ? fmt::format("operands have the {} axes of the result; they may lack its first {} "
                                       "if they are the same for all of them",
                                       axes, axes - 2)
                         : fmt::format("operands have as many axes as the result, {}", axes));
    }
    return true;
  }

  /// Checks extents. An axis of extent 1 has the same value for all indices of the result's axis.
  void extents(const Op& op) {
    const Tensor& out = tensor_of(op.writes[0]);
    for (size_t k = 0; k < op.reads.size(); ++k) {
      const Tensor& in = tensor_of(op.reads[k]);
      const std::vector<int> axes = axes_of_operand(s_, op, k);
      for (size_t axis = 0; axis < axes.size(); ++axis) {
        if (axes[axis] == no_axis && is_product(op) && in.axes[axis].tag == Tag::ranks)
          say(op.at,
              fmt::format("'{}' sums over axis {} of '{}', which is over ranks", op.name, axis, in.name),
              "give the ranks an axis of their own, [ranks, extent / ranks], in operands and result, and sum "
              "the result over it");
        if (axes[axis] == no_axis || is_one(s_, in.axes[axis].extent)) continue;
        const Axis &from = in.axes[axis], &to = out.axes[size_t(axes[axis])];
        if (from.tag == Tag::whole && to.tag == Tag::whole) continue;  // [shapes] compares the numbers
        if (from.extent == to.extent) continue;
        const auto spread = [&](const Axis& one) {
          return one.tag == Tag::whole ? extent(one.extent)
                                       : fmt::format("{} over {}", extent(one.extent), noun(one.tag));
        };
        say(op.at,
            fmt::format("axis {} of '{}' is {}, but axis {} of '{}' is {}", axis, in.name, spread(from),
                        axes[axis], out.name, spread(to)),
            "give both the same extent; where only a part of an axis is of the ranks, split it in two: "
            "[ranks, extent / "
            "ranks]");
      }
    }
  }

  const Schedule& s_;
  Diagnostics& out_;
  std::map<uint32_t, uint32_t> made_;  // tensor, and the line that computes it
};

}  // namespace

void check_layout(const Schedule& schedule, Diagnostics& out) {
  if (!schedule.layout.empty()) Checker(schedule, out).all();
}

}  // namespace chorale::schedule
