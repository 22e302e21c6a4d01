// This check requires the operands of an operation to fit each other.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "checks.hpp"
#include "chorale/did_you_mean.hpp"
#include "chorale/schedule/builtins.hpp"
#include "compiler/schedule/report.hpp"

namespace chorale::schedule {
namespace {

using Shape = std::vector<uint64_t>;

/// Drops axes with one element, which do not matter.
Shape squeezed(const Box& box) {
  Shape shape;
  for (const uint64_t extent : box.shape)
    if (extent != 1) shape.push_back(extent);
  return shape;
}

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

  /// Checks a launch. A plan needs the elements of its input and of its output to be consecutive in memory.
  void launch(uint32_t rank, const Step& step) {
    same_type(rank, step, step.writes[0], step.reads[0]);
    for (const Box* box : {&step.writes[0], &step.reads[0]})
      if (!box->contiguous)
        fail(rank, step,
             fmt::format("'{}' is launched with {}, whose elements are not contiguous", step.name,
                         shape(*box)));
  }

  void call(uint32_t rank, const Step& step) {
    if (const Function* const own = function_of(s_, step)) {
      if (step.writes.size() != own->writes || step.reads.size() != own->reads)
        fail(rank, step,
             fmt::format("'{}' is called with {} written and {} read views, but is declared with {} and {}",
                         step.name, step.writes.size(), step.reads.size(), own->writes, own->reads));
      return;
    }
    if (!is_builtin(step.name)) {
      std::vector<std::string_view> known = builtin_names();
      for (const Function& function : s_.functions) known.push_back(function.name);
      report(out_, s_, "shapes", step.at,
             fmt::format("'{}' on {} is neither declared nor built in{}", step.name, where(rank, step),
                         did_you_mean(step.name, known)));
      return;
    }
    const auto operands = [&](const std::vector<Box>& boxes) {
      std::vector<Operand> list;
      for (const Box& box : boxes)
        list.push_back({type(box), box.shape, box.strides,
                        fmt::format("{} ({}[{}])", text(made_, box), dtype_name(type(box)),
                                    fmt::join(box.shape, ", "))});
      return list;
    };
    const std::string wrong = misfit(step.name, operands(step.writes), operands(step.reads), step.attributes);
    if (!wrong.empty()) fail(rank, step, wrong);
  }

  const Schedule& s_;
  const Concrete& made_;
  Diagnostics& out_;
};

}  // namespace

void check_shapes(const Schedule& schedule, const Concrete& made, const Concrete&, Diagnostics& out) {
  Shapes(schedule, made, out).all();
}

}  // namespace chorale::schedule
