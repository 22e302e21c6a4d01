// Operands of an operation fit together.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "checks.hpp"
#include "compiler/host/report.hpp"

namespace chorale::host {
namespace {

using Shape = std::vector<uint64_t>;

/// Without axes of one element, which change nothing.
Shape squeezed(const Box& box) {
  Shape shape;
  for (const uint64_t extent : box.shape)
    if (extent != 1) shape.push_back(extent);
  return shape;
}

uint64_t elements(const Box& box) {
  uint64_t count = 1;
  for (const uint64_t extent : box.shape) count *= extent;
  return count;
}

/// The last axis, and all before it as one: what a product takes a view for.
std::pair<uint64_t, uint64_t> matrix(const Box& box) {
  const uint64_t columns = box.shape.empty() ? 1 : box.shape.back();
  return {columns ? elements(box) / columns : 0, columns};
}

struct Builtin {
  const char* name;
  size_t writes, least_reads, most_reads;
};
constexpr Builtin builtins[] = {{"matmul", 1, 2, 2}, {"linear", 1, 2, 3}, {"add", 1, 2, 64},
                                {"sum", 1, 1, 1},    {"cast", 1, 1, 1},   {"zero", 1, 0, 0}};

class Shapes {
 public:
  Shapes(const Schedule& schedule, const Concrete& made, Diagnostics& out)
      : s_(schedule), made_(made), out_(out) {}

  void all() {
    for (uint32_t rank = 0; rank < made_.ranks; ++rank)
      for (const Step& step : made_.steps[rank]) one(rank, step);
  }

 private:
  void fail(uint32_t rank, const Step& step, const std::string& text) {
    report(out_, s_, "shapes", step.at, fmt::format("{}, on {}", text, where(rank, step)));
  }
  std::string shape(const Box& box) const {
    return fmt::format("{}, which is [{}]", text(made_, box), fmt::join(box.shape, ", "));
  }
  DType type(const Box& box) const { return made_.tensors[box.tensor].dtype; }

  void same_type(uint32_t rank, const Step& step, const Box& left, const Box& right) {
    if (type(left) != type(right))
      fail(rank, step,
           fmt::format("{} is {}, but {} is {}", text(made_, left), dtype_name(type(left)),
                       text(made_, right), dtype_name(type(right))));
  }
  void same_shape(uint32_t rank, const Step& step, const Box& left, const Box& right) {
    if (squeezed(left) != squeezed(right))
      fail(rank, step, fmt::format("{} does not have the shape of {}", shape(left), shape(right)));
  }

  void one(uint32_t rank, const Step& step) {
    if (step.kind == StepKind::copy) {
      same_type(rank, step, step.writes[0], step.reads[0]);
      same_shape(rank, step, step.writes[0], step.reads[0]);
    }
    if (step.kind == StepKind::launch) launch(rank, step);
    if (step.kind == StepKind::call) call(rank, step);
  }

  /// A plan knows its input and output as elements that follow each other.
  void launch(uint32_t rank, const Step& step) {
    same_type(rank, step, step.writes[0], step.reads[0]);
    for (const Box* box : {&step.writes[0], &step.reads[0]})
      if (!box->contiguous)
        fail(rank, step,
             fmt::format("'{}' is launched with {}, whose elements do not follow each other", step.name,
                         shape(*box)));
  }

  void call(uint32_t rank, const Step& step) {
    const auto own = std::find_if(s_.functions.begin(), s_.functions.end(),
                                  [&](const Function& one) { return one.name == step.name; });
    if (own != s_.functions.end()) {
      if (step.writes.size() != own->writes || step.reads.size() != own->reads)
        fail(rank, step,
             fmt::format("'{}' is called with {} written and {} read views, but is declared with {} and {}",
                         step.name, step.writes.size(), step.reads.size(), own->writes, own->reads));
      return;
    }
    const auto known = std::find_if(std::begin(builtins), std::end(builtins),
                                    [&](const Builtin& one) { return one.name == step.name; });
    if (known == std::end(builtins))
      return fail(rank, step, fmt::format("'{}' is neither declared nor built in", step.name));
    if (step.writes.size() != known->writes || step.reads.size() < known->least_reads ||
        step.reads.size() > known->most_reads)
      return fail(rank, step,
                  fmt::format("'{}' takes {} written and {} to {} read views, not {} and {}", step.name,
                              known->writes, known->least_reads, known->most_reads, step.writes.size(),
                              step.reads.size()));
    const Box& to = step.writes[0];
    if (step.name == "cast") return same_shape(rank, step, to, step.reads[0]);
    if (step.name == "zero") return;
    for (const Box& from : step.reads) same_type(rank, step, to, from);
    if (step.name == "add") {
      for (const Box& from : step.reads) same_shape(rank, step, to, from);
    } else if (step.name == "sum") {
      sum(rank, step);
    } else {
      product(rank, step);
    }
  }

  void sum(uint32_t rank, const Step& step) {
    const auto axis = step.attributes.find("axis");
    const Box& from = step.reads[0];
    if (axis == step.attributes.end() || axis->second < 0 || uint64_t(axis->second) >= from.shape.size())
      return fail(rank, step,
                  fmt::format("'sum' needs the attribute axis, one of the {} of {}", from.shape.size(),
                              text(made_, from)));
    Box rest = from;
    rest.shape.erase(rest.shape.begin() + axis->second);
    if (squeezed(rest) != squeezed(step.writes[0]))
      fail(rank, step,
           fmt::format("{} is not the sum over axis {} of {}", shape(step.writes[0]), axis->second,
                       shape(from)));
  }

  /// matmul: [m, k] by [k, n]. linear: [m, k] by [n, k], and [n] added to every row.
  void product(uint32_t rank, const Step& step) {
    const auto [m, n] = matrix(step.writes[0]);
    const auto [left_m, left_k] = matrix(step.reads[0]);
    auto [right_k, right_n] = matrix(step.reads[1]);
    if (step.name == "linear") std::swap(right_k, right_n);
    if (m != left_m || n != right_n || left_k != right_k)
      fail(rank, step,
           fmt::format("{} is not the {} of {} and {}", shape(step.writes[0]), step.name,
                       shape(step.reads[0]), shape(step.reads[1])));
    if (step.reads.size() == 3 && elements(step.reads[2]) != n)
      fail(rank, step, fmt::format("the bias {} does not have {} elements", shape(step.reads[2]), n));
  }

  const Schedule& s_;
  const Concrete& made_;
  Diagnostics& out_;
};

}  // namespace

void check_shapes(const Schedule& schedule, const Concrete& made, Diagnostics& out) {
  Shapes(schedule, made, out).all();
}

}  // namespace chorale::host
