#include "tools/schedules/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>

#include "tools/command.hpp"
#include "tools/elements.hpp"
#include "tools/oracle.hpp"

namespace chorale::tools {

using schedule::Box;
using schedule::Step;
using schedule::StepKind;

namespace {

/// Calls f(index of the element in its tensor) for a box, in row-major order.
template <class F>
void each_element(const Box& box, const schedule::ConcreteTensor& tensor, const F& f) {
  if (box.bytes == 0) return;
  std::vector<uint64_t> at(box.lo.size());
  for (;;) {
    uint64_t index = 0;
    for (size_t axis = 0; axis < at.size(); ++axis)
      index = index * tensor.shape[axis] + box.lo[axis] + at[axis];
    f(index);
    size_t axis = at.size();
    while (axis > 0 && ++at[axis - 1] == box.extent[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

uint64_t product(const std::vector<uint64_t>& extents, size_t first, size_t last) {
  uint64_t all = 1;
  for (size_t axis = first; axis < last; ++axis) all *= extents[axis];
  return all;
}

const std::set<std::string, std::less<>> known = {"matmul", "linear", "add",  "sum",
                                                  "cast",   "copy",   "zero", "fill"};

}  // namespace

Reference::Reference(const Plan& plan, schedule::Concrete unrolled, const BlockPlans& plans,
                     const schedule::Values& params)
    : schedule_(*plan.extension.schedule), all_(std::move(unrolled)), plans_(&plans) {
  sizes_ = count(all_.ranks, "rank");
  for (const schedule::Param& param : schedule_.params) {
    const auto set = params.find(param.name);
    sizes_ +=
        fmt::format(", {} = {}", param.name, set == params.end() ? param.value.value_or(0) : set->second);
  }
  for (const auto& steps : all_.steps) {
    for (const Step& step : steps) {
      if (step.kind == StepKind::call && !known.count(step.name))
        throw Failure(
            Exit::command_wrong,
            fmt::format("schedule '{}' calls '{}', a function of an application", plan.name, step.name),
            "run it there: see chorale/schedule.hpp");
      if (step.kind == StepKind::launch && !promises(plans.at(step.name)))
        throw Failure(
            Exit::command_wrong,
            fmt::format("schedule '{}' launches '{}', whose plan '{}' ({}) does not say what its "
                        "result is",
                        plan.name, step.name, plans.at(step.name).name, plans.at(step.name).collective),
            "run it in an application: see chorale/schedule.hpp");
    }
  }
}

void Reference::fill_inputs(uint64_t turn) {
  values_.assign(all_.ranks, {});
  given_.clear();
  for (uint32_t rank = 0; rank < all_.ranks; ++rank) {
    for (uint32_t tensor = 0; tensor < all_.tensors.size(); ++tensor) {
      const schedule::ConcreteTensor& of = all_.tensors[tensor];
      Values& values = values_[rank].emplace_back(of.bytes / dtype_size(of.dtype), std::nan(""));
      if (of.zero) values.assign(values.size(), 0);
      if (of.role != schedule::Role::in) continue;
      // Inputs that are not spread over the ranks are the same on all ranks.
      bool spread = false;
      for (const schedule::Axis& axis : schedule_.tensors[tensor].axes)
        spread |= axis.tag == schedule::Tag::ranks;
      const bool is_signed = format(of.dtype).is_signed;
      for (uint64_t at = 0; at < values.size(); ++at) {
        uint64_t mixed =
            (turn * 64 + tensor) * 0x9e3779b97f4a7c15u + (spread ? rank * 0x632be59bd9b4e019u : 0) + at;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
        values[at] = double((mixed >> 33) % 5) - (is_signed ? 2 : 0);
      }
    }
  }
}

void Reference::run(uint64_t turn) {
  fill_inputs(turn);
  next_.assign(all_.ranks, 0);
  ends_.assign(all_.pairs.size(), 0);
  posts_.assign(all_.flags.size(), 0);
  launched_.assign(all_.ranks, 0);
  launches_ = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t rank = 0; rank < all_.ranks; ++rank)
      while (next_[rank] < all_.steps[rank].size() && step(rank)) moved = true;
  }
  for (uint32_t rank = 0; rank < all_.ranks; ++rank) {
    if (next_[rank] < all_.steps[rank].size())
      throw Failure(Exit::plan_wrong, fmt::format("the schedule does not come to its end on {}",
                                                  where(rank, all_.steps[rank][next_[rank]])));
  }
}

/// Executes the next step of a rank. Returns false if the rank has to wait.
bool Reference::step(uint32_t rank) {
  const Step& step = all_.steps[rank][next_[rank]];
  switch (step.kind) {
    case StepKind::copy:
      write(rank, step.writes[0], read(rank, step.reads[0]));
      break;
    case StepKind::fill:
    case StepKind::call:
      call(rank, step);
      break;
    case StepKind::launch:
      if (!all_have_come(rank)) return false;
      if (launches_ == launched_[rank]) launch();
      ++launched_[rank];
      break;
    case StepKind::group:
      for (const schedule::ConcreteTransfer& transfer : step.transfers)
        if (++ends_[transfer.pair] == 2) move(all_.pairs[transfer.pair]);
      break;
    case StepKind::wait:
      for (const schedule::ConcreteTransfer& transfer : all_.steps[rank][step.token].transfers)
        if (ends_[transfer.pair] != 2) return false;
      break;
    case StepKind::post:
      ++posts_[step.flag];
      break;
    case StepKind::take:
      if (posts_[step.flag] == 0) return false;
      --posts_[step.flag];
      break;
    case StepKind::barrier: {
      // Every rank has reached the barrier, or has passed it.
      const auto passed = [this](uint32_t of) {
        size_t count = 0;
        for (size_t at = 0; at < next_[of]; ++at) count += all_.steps[of][at].kind == StepKind::barrier;
        return count;
      };
      for (uint32_t peer = 0; peer < all_.ranks; ++peer) {
        const bool stands =
            next_[peer] < all_.steps[peer].size() && all_.steps[peer][next_[peer]].kind == StepKind::barrier;
        if (passed(peer) <= passed(rank) && !stands) return false;
      }
      break;
    }
    default:
      break;  // it orders streams, and the reference has only one
  }
  ++next_[rank];
  return true;
}

void Reference::move(const schedule::Pair& pair) {
  const auto box = [this](const schedule::Pair::End& end) -> const Box& {
    return all_.steps[end.rank][end.step].transfers[end.transfer].box;
  };
  write(pair.recv.rank, box(pair.recv), read(pair.send.rank, box(pair.send)));
}

/// Returns true if all ranks have reached the launch that `rank` is at, or have passed it.
bool Reference::all_have_come(uint32_t rank) const {
  for (uint32_t peer = 0; peer < all_.ranks; ++peer) {
    const bool stands =
        next_[peer] < all_.steps[peer].size() && all_.steps[peer][next_[peer]].kind == StepKind::launch;
    if (launched_[peer] <= launched_[rank] && !(stands && launched_[peer] == launched_[rank])) return false;
  }
  return true;
}

/// Runs the launch that all ranks have reached.
void Reference::launch() {
  std::vector<const Step*> steps;
  std::vector<Values> inputs;
  for (uint32_t rank = 0; rank < all_.ranks; ++rank) {
    steps.push_back(&all_.steps[rank][next_[rank]]);
    inputs.push_back(read(rank, steps[rank]->reads[0]));
  }
  const Plan& plan = plans_->at(steps[0]->name);
  for (uint32_t rank = 0; rank < all_.ranks; ++rank) {
    const Box& to = steps[rank]->writes[0];
    Values result = read(rank, to);
    const Oracle::Case of{.dtype = all_.tensors[to.tensor].dtype,
                          .op = reduce_op_of(plan),
                          .input_elements = inputs[rank].size(),
                          .output_elements = result.size()};
    for (uint64_t at = 0; at < result.size(); ++at) {
      const auto input = [&](uint32_t rank_of, uint64_t element) { return inputs[rank_of][element]; };
      if (const auto made = promised(plan, of, rank, at, input)) result[at] = *made;
    }
    write(rank, to, result);
  }
  ++launches_;
}

void Reference::call(uint32_t rank, const Step& step) {
  const auto attribute = [&](const char* which) {
    const auto found = step.attributes.find(which);
    return found == step.attributes.end() ? int64_t(0) : found->second;
  };
  if (step.name == "matmul" || step.name == "linear") return multiply(rank, step);
  const Box& out = step.writes[0];
  Values result = read(rank, out);
  if (step.name == "add") {
    const Values a = read(rank, step.reads[0]), b = read(rank, step.reads[1]);
    for (size_t at = 0; at < result.size(); ++at) result[at] = a[at] + b[at];
  } else if (step.name == "sum") {
    const size_t axis = size_t(attribute("axis"));
    const std::vector<uint64_t>& shape = step.reads[0].shape;
    const uint64_t extent = shape.at(axis), inner = product(shape, axis + 1, shape.size());
    const Values in = read(rank, step.reads[0]);
    result.assign(result.size(), 0);
    for (size_t at = 0; at < in.size(); ++at) result[at / (extent * inner) * inner + at % inner] += in[at];
  } else if (step.name == "cast" || step.name == "copy") {
    result = read(rank, step.reads[0]);
  } else {
    result.assign(result.size(), double(step.kind == StepKind::fill ? step.value : attribute("value")));
  }
  write(rank, out, result);
}

void Reference::multiply(uint32_t rank, const Step& step) {
  const std::vector<uint64_t>&left = step.reads[0].shape, &right = step.reads[1].shape;
  const size_t axes = left.size();
  const bool transposed = step.name == "linear";
  const uint64_t m = left[axes - 2], k = left[axes - 1], n = right[right.size() - (transposed ? 2 : 1)];
  const Values a = read(rank, step.reads[0]), b = read(rank, step.reads[1]);
  const Values bias = step.reads.size() == 3 ? read(rank, step.reads[2]) : Values(n, 0.0);
  Values c(read(rank, step.writes[0]).size());
  for (uint64_t row = 0; row < c.size() / std::max<uint64_t>(n, 1); ++row) {
    const double* const matrix = b.data() + (right.size() == 2 ? 0 : row / m * k * n);
    double* const to = c.data() + row * n;
    std::copy(bias.begin(), bias.end(), to);
    for (uint64_t i = 0; i < k; ++i) {
      const double factor = a[row * k + i];
      for (uint64_t column = 0; column < n; ++column)
        to[column] += factor * (transposed ? matrix[column * k + i] : matrix[i * n + column]);
    }
  }
  write(rank, step.writes[0], c);
}

Reference::Values Reference::read(uint32_t rank, const Box& box) const {
  Values values;
  each_element(box, all_.tensors[box.tensor],
               [&](uint64_t index) { values.push_back(values_[rank][box.tensor][index]); });
  return values;
}

void Reference::write(uint32_t rank, const Box& box, const Values& values) {
  if (all_.tensors[box.tensor].role == schedule::Role::in)
    given_.try_emplace({rank, box.tensor}, values_[rank][box.tensor]);
  const schedule::ConcreteTensor& tensor = all_.tensors[box.tensor];
  const double most = format(tensor.dtype).exact;
  size_t at = 0;
  each_element(box, tensor, [&](uint64_t index) {
    const double value = values[at++];
    if (std::abs(value) > most)
      throw Failure(Exit::command_wrong,
                    fmt::format("'{}' would hold {}, but {} is exact up to {} only; this is with {}",
                                tensor.name, value, dtype_name(tensor.dtype), most, sizes_),
                    "use fewer ranks, smaller parameters, or a wider type");
    values_[rank][box.tensor][index] = value;
  });
}

std::vector<std::byte> Reference::bytes(uint32_t rank, uint32_t tensor) const {
  return encoded(tensor, values_[rank][tensor]);
}

std::vector<std::byte> Reference::input_bytes(uint32_t rank, uint32_t tensor) const {
  const auto given = given_.find({rank, tensor});
  return encoded(tensor, given == given_.end() ? values_[rank][tensor] : given->second);
}

std::vector<std::byte> Reference::encoded(uint32_t tensor, const Values& values) const {
  const DType dtype = all_.tensors[tensor].dtype;
  std::vector<std::byte> bytes(all_.tensors[tensor].bytes);
  for (size_t at = 0; at < values.size(); ++at)
    encode(dtype, std::isnan(values[at]) ? 0 : values[at], bytes.data() + at * dtype_size(dtype));
  return bytes;
}

std::optional<std::string> Reference::differs(uint32_t rank, uint32_t tensor, const std::byte* found) const {
  const schedule::ConcreteTensor& of = all_.tensors[tensor];
  const size_t width = dtype_size(of.dtype);
  const Values& values = values_[rank][tensor];
  for (size_t at = 0; at < values.size(); ++at) {
    if (std::isnan(values[at])) continue;  // the schedule does not write it
    std::byte expected[8];
    encode(of.dtype, values[at], expected);
    if (std::memcmp(expected, found + at * width, width) == 0) continue;
    return fmt::format("rank {}, '{}' element {}: {}, expected {}", rank, of.name, at,
                       decode(of.dtype, found + at * width), values[at]);
  }
  return {};
}

}  // namespace chorale::tools
