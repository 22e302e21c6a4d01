#include "algebra.hpp"

#include <algorithm>

#include "chorale/schedule/builtins.hpp"
#include "compiler/schedule/lower/layout.hpp"

namespace chorale::schedule {

// -- Contents

Algebra::Algebra() {
  terms_.resize(1);  // none
  zero_ = intern({});
}

Content Algebra::intern(Terms terms) {
  std::sort(terms.begin(), terms.end());
  const auto [known, is_new] = ids_.emplace(terms, Content(terms_.size()));
  if (is_new) terms_.push_back(std::move(terms));
  return known->second;
}

Content Algebra::atom(const std::string& name) {
  const auto known = atoms_.find(name);
  if (known != atoms_.end()) return known->second;
  const Content id = Content(terms_.size());
  terms_.push_back({{id, 0}});
  ids_.emplace(terms_.back(), id);
  atoms_.emplace(name, id);
  names_.emplace(id, name);
  return id;
}

Content Algebra::sum(const std::vector<Content>& addends) {
  Terms all;
  for (const Content one : addends) all.insert(all.end(), terms_[one].begin(), terms_[one].end());
  return intern(std::move(all));
}

Content Algebra::product(Content left, Content right) { return intern({{left, right}}); }

void Algebra::atoms(Content of, std::map<Content, std::string>& found) const {
  for (const auto& [left, right] : terms_[of]) {
    const auto name = names_.find(left);
    if (right == 0 && name != names_.end()) {
      found.insert(*name);
      continue;
    }
    atoms(left, found);
    atoms(right, found);
  }
}

std::string Algebra::difference(Content has, Content lacks) const {
  std::map<Content, std::string> these, those;
  atoms(has, these);
  atoms(lacks, those);
  for (const auto& [id, name] : these)
    if (!those.count(id)) return name;
  return "";
}

// -- Cells

std::vector<size_t> visible(const Concrete& made, const Box& box) {
  const std::vector<uint64_t>& shape = made.tensors[box.tensor].shape;
  std::vector<size_t> axes(box.shape.size());
  uint64_t stride = 1;
  size_t left = box.shape.size();
  for (size_t axis = shape.size(); axis-- > 0; stride *= shape[axis])
    if (left && box.strides[left - 1] == stride && box.shape[left - 1] == box.extent[axis])
      axes[--left] = axis;
  return axes;
}

namespace {

std::vector<size_t> wide(const Box& box) {
  std::vector<size_t> axes;
  for (size_t axis = 0; axis < box.extent.size(); ++axis)
    if (box.extent[axis] != 1) axes.push_back(axis);
  return axes;
}

}  // namespace

Cells::Cells(const Schedule& schedule, const Concrete& made) {
  for (const ConcreteTensor& tensor : made.tensors) {
    auto& axes = cuts_.emplace_back();
    for (const uint64_t extent : tensor.shape)
      axes.push_back(extent ? std::vector<uint64_t>{0, extent} : std::vector<uint64_t>{0});
  }
  for (const std::vector<Step>& steps : made.steps)
    for (const Step& step : steps) of_step(schedule, made, step);
  of_layout(schedule, made);
  spread();
  for (const auto& axes : cuts_) {
    Index& extents = extents_.emplace_back();
    for (const std::vector<uint64_t>& cuts : axes) extents.push_back(cuts.size() - 1);
  }
}

void Cells::add(const Box& box) {
  for (size_t axis = 0; axis < box.lo.size(); ++axis) {
    std::vector<uint64_t>& cuts = cuts_[box.tensor][axis];
    for (const uint64_t cut : {box.lo[axis], box.lo[axis] + box.extent[axis]}) {
      const auto place = std::lower_bound(cuts.begin(), cuts.end(), cut);
      if (place == cuts.end() || *place != cut) cuts.insert(place, cut);
    }
  }
}

void Cells::same(const Box& one, const std::vector<size_t>& axes, const Box& other,
                 const std::vector<size_t>& others) {
  for (size_t k = 0; k < axes.size() && k < others.size(); ++k) {
    if (one.extent[axes[k]] != other.extent[others[k]]) continue;
    const Same made{one.tensor,      uint32_t(axes[k]),   other.tensor,       uint32_t(others[k]),
                    one.lo[axes[k]], other.lo[others[k]], one.extent[axes[k]]};
    same_.push_back(made);
    same_.push_back(
        {made.other, made.other_axis, made.tensor, made.axis, made.other_lo, made.lo, made.length});
  }
}
void Cells::same(const Box& one, const Box& other) { same(one, wide(one), other, wide(other)); }

void Cells::of_step(const Schedule& schedule, const Concrete& made, const Step& step) {
  for (const auto* list : {&step.writes, &step.reads})
    for (const Box& box : *list) add(box);
  for (const ConcreteTransfer& one : step.transfers) {
    add(one.box);
    if (!one.is_send) continue;
    const Pair::End& end = made.pairs[one.pair].recv;
    same(one.box, made.steps[end.rank][end.step].transfers[end.transfer].box);
  }
  if (step.kind == StepKind::copy || step.kind == StepKind::put || step.kind == StepKind::get)
    same(step.writes[0], step.reads[0]);
  if (step.kind != StepKind::call || (step.name != "sum" && step.name != "add") ||
      function_of(schedule, step))
    return;
  for (const Box& read : step.reads) {
    std::vector<size_t> axes = visible(made, read);
    if (step.name == "sum") axes.erase(axes.begin() + summed_axis(step.attributes));
    same(step.writes[0], visible(made, step.writes[0]), read, axes);
  }
}

/// Cuts an axis at the same places in result and operand. If it is over ranks on one side, both sides have
/// one cell per rank.
void Cells::of_layout(const Schedule& schedule, const Concrete& made) {
  const auto whole = [&](uint32_t tensor) {
    const std::vector<uint64_t>& shape = made.tensors[tensor].shape;
    return Box{.tensor = tensor,
               .lo = std::vector<uint64_t>(shape.size()),
               .extent = shape,
               .shape = {},
               .strides = {}};
  };
  const auto every_index = [&](const Axis& other, uint32_t tensor, size_t axis) {
    if (other.tag != Tag::ranks || schedule.tensors[tensor].axes[axis].tag == Tag::ranks) return;
    std::vector<uint64_t>& cuts = cuts_[tensor][axis];
    const uint64_t extent = cuts.back();
    if (extent != made.ranks) return;  // no such axis, see alike()
    cuts.clear();
    for (uint64_t cut = 0; cut <= extent; ++cut) cuts.push_back(cut);
  };
  const auto alike = [&](uint32_t one, size_t axis, uint32_t other, size_t other_axis) {
    every_index(schedule.tensors[other].axes[other_axis], one, axis);
    every_index(schedule.tensors[one].axes[axis], other, other_axis);
    same(whole(one), {axis}, whole(other), {other_axis});
  };
  for (const Op& op : schedule.layout) {
    const uint32_t out = op.writes[0].tensor;
    for (size_t k = 0; k < op.reads.size(); ++k) {
      const std::vector<int> axes = axes_of_operand(schedule, op, k);
      for (size_t axis = 0; axis < axes.size(); ++axis)
        if (axes[axis] != no_axis) alike(out, size_t(axes[axis]), op.reads[k].tensor, axis);
    }
    if (!is_product(op)) continue;
    const size_t left = schedule.tensors[op.reads[0].tensor].axes.size() - 1;
    const size_t right = schedule.tensors[op.reads[1].tensor].axes.size() - (op.name == "linear" ? 1 : 2);
    alike(op.reads[0].tensor, left, op.reads[1].tensor, right);
  }
}

void Cells::spread() {
  for (bool more = true; more;) {
    more = false;
    for (const Same& one : same_) {
      std::vector<uint64_t>& to = cuts_[one.other][one.other_axis];
      const std::vector<uint64_t> from = cuts_[one.tensor][one.axis];
      for (const uint64_t cut : from) {
        if (cut < one.lo || cut > one.lo + one.length) continue;
        const uint64_t there = cut - one.lo + one.other_lo;
        const auto place = std::lower_bound(to.begin(), to.end(), there);
        if (place != to.end() && *place == there) continue;
        to.insert(place, there);
        more = true;
      }
    }
  }
}

size_t Cells::count(uint32_t tensor) const {
  size_t count = 1;
  for (const size_t extent : extents_[tensor]) count *= extent;
  return count;
}

size_t Cells::position(uint32_t tensor, const Index& index) const {
  size_t position = 0;
  for (size_t axis = 0; axis < index.size(); ++axis)
    position = position * extents_[tensor][axis] + index[axis];
  return position;
}

std::vector<std::pair<size_t, size_t>> Cells::range(const Box& box) const {
  std::vector<std::pair<size_t, size_t>> all;
  for (size_t axis = 0; axis < box.lo.size(); ++axis) {
    const std::vector<uint64_t>& cuts = cuts_[box.tensor][axis];
    const auto at = [&](uint64_t cut) {
      return size_t(std::lower_bound(cuts.begin(), cuts.end(), cut) - cuts.begin());
    };
    all.emplace_back(at(box.lo[axis]), at(box.lo[axis] + box.extent[axis]) - at(box.lo[axis]));
  }
  return all;
}

Box Cells::box(uint32_t tensor, const Index& index) const {
  Box box{.tensor = tensor, .lo = {}, .extent = {}, .shape = {}, .strides = {}};
  for (size_t axis = 0; axis < index.size(); ++axis) {
    const std::vector<uint64_t>& cuts = cuts_[tensor][axis];
    box.lo.push_back(cuts[index[axis]]);
    box.extent.push_back(cuts[index[axis] + 1] - cuts[index[axis]]);
  }
  return box;
}

void each_index(const Cells::Index& extents, const std::function<void(const Cells::Index&)>& body) {
  size_t count = 1;
  for (const size_t extent : extents) count *= extent;
  Cells::Index index(extents.size());
  for (; count > 0; --count) {
    body(index);
    for (size_t axis = extents.size(); axis-- > 0;) {
      if (++index[axis] < extents[axis]) break;
      index[axis] = 0;
    }
  }
}

// -- Functions

namespace {

/// Returns the content of an operand for a cell of the result. The operand may lack outermost axes. An axis
/// with one cell has the same content for all indices.
Content at(const ReadCells& operand, const Cells::Index& index) {
  const size_t missing = index.size() - operand.extents.size();
  Cells::Index own;
  for (size_t axis = 0; axis < operand.extents.size(); ++axis)
    own.push_back(operand.extents[axis] == 1 ? 0 : index[axis + missing]);
  return operand.at(own);
}

/// Returns whether each innermost axis has one cell, or as many cells as the same axis of `like`.
bool fits(const Cells::Index& extents, const Cells::Index& like) {
  if (extents.size() > like.size()) return false;
  for (size_t k = 1; k <= extents.size(); ++k) {
    const size_t one = extents[extents.size() - k];
    if (one != 1 && one != like[like.size() - k]) return false;
  }
  return true;
}

}  // namespace

bool alike(const std::string& function, int64_t axis, const Cells::Index& result,
           const std::vector<ReadCells>& operands) {
  const bool linear = function == "linear";
  if (function != "matmul" && !linear) {
    for (const ReadCells& one : operands) {
      Cells::Index rest = one.extents;
      if (function == "sum" && (axis < 0 || size_t(axis) >= rest.size())) return false;
      if (function == "sum") rest.erase(rest.begin() + axis);
      if (rest.size() != result.size() || !fits(rest, result)) return false;
    }
    return true;
  }
  const Cells::Index &a = operands[0].extents, &b = operands[1].extents;
  if (result.size() < 2 || a.size() < 2 || b.size() < 2) return false;
  Cells::Index left = result, right = result, bias = result;
  left.back() = a.back();
  right[right.size() - (linear ? 1 : 2)] = a.back();
  right[right.size() - (linear ? 2 : 1)] = result.back();
  bias.erase(bias.end() - 2);
  return fits(a, left) && fits(b, right) && b[b.size() - (linear ? 1 : 2)] == a.back() &&
         (operands.size() < 3 || fits(operands[2].extents, bias));
}

Content computed(Algebra& algebra, const std::string& function, int64_t axis, const Cells::Index& index,
                 const std::vector<ReadCells>& operands) {
  if (function == "set") return at(operands[0], index);
  if (function == "add") return algebra.sum({at(operands[0], index), at(operands[1], index)});
  std::vector<Content> addends;
  if (function == "sum") {
    Cells::Index whole = index;
    whole.insert(whole.begin() + axis, 0);
    for (; whole[size_t(axis)] < operands[0].extents[size_t(axis)]; ++whole[size_t(axis)])
      addends.push_back(at(operands[0], whole));
    return algebra.sum(addends);
  }
  Cells::Index left = index, right = index;
  const size_t row = index.size() - 2;
  for (size_t k = 0; k < operands[0].extents.back(); ++k) {
    left.back() = k;
    right[row] = function == "linear" ? index.back() : k;
    right.back() = function == "linear" ? k : index.back();
    addends.push_back(algebra.product(at(operands[0], left), at(operands[1], right)));
  }
  if (operands.size() == 3) {
    Cells::Index bias = index;
    bias.erase(bias.end() - 2);
    addends.push_back(at(operands[2], bias));
  }
  return algebra.sum(addends);
}

}  // namespace chorale::schedule
