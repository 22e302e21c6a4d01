#include "chorale/schedule/builtins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace chorale::schedule {
namespace {

struct BuiltinForm {
  std::string_view name;
  size_t writes, least_reads, most_reads;
  std::string_view attribute = {};  ///< the attribute that it takes; empty: none
};
constexpr BuiltinForm forms[] = {{"matmul", 1, 2, 2, "tf32"}, {"linear", 1, 2, 3, "tf32"}, {"add", 1, 2, 2},
                                 {"sum", 1, 1, 1, "axis"},    {"cast", 1, 1, 1},           {"copy", 1, 1, 1},
                                 {"zero", 1, 0, 0},           {"fill", 1, 0, 0, "value"}};

const BuiltinForm* find(std::string_view function) {
  const auto form = std::find_if(std::begin(forms), std::end(forms),
                                 [&](const BuiltinForm& one) { return one.name == function; });
  return form == std::end(forms) ? nullptr : form;
}

/// Returns what is wrong with the operands of a product. For matmul, C[b] is A[b] B[b] or A[b] B. For linear,
/// it is A[b] times B transposed, plus a bias.
std::string product_misfit(std::string_view function, const Operand& c, std::span<const Operand> reads) {
  const bool linear = function == "linear";
  const Operand &a = reads[0], &b = reads[1];
  const auto wrong = [&](std::string_view what) {
    return fmt::format("{} of {} and {} to {}: {}", function, a.text, b.text, c.text, what);
  };
  if (a.shape.size() < 2 || b.shape.size() < 2 || c.shape.size() < 2)
    return wrong("matrices have two axes or more");
  const size_t rank = a.shape.size();
  if (c.shape.size() != rank || (b.shape.size() != 2 && b.shape.size() != rank))
    return wrong("the number of axes differs");
  if (linear && b.shape.size() != 2) return wrong("the weight has two axes");
  for (size_t axis = 0; axis + 2 < rank; ++axis) {
    if (a.shape[axis] != c.shape[axis] || (b.shape.size() == rank && b.shape[axis] != c.shape[axis]))
      return wrong("the batches differ");
  }
  const size_t last = b.shape.size() - 1;
  const uint64_t k = linear ? b.shape[last] : b.shape[last - 1],
                 n = linear ? b.shape[last - 1] : b.shape[last];
  if (a.shape[rank - 1] != k || a.shape[rank - 2] != c.shape[rank - 2] || n != c.shape[rank - 1])
    return wrong("the extents do not fit");
  if (reads.size() == 3 && (reads[2].shape.size() != 1 || reads[2].shape[0] != n))
    return fmt::format("linear to {} with a bias of {}: one of [{}] fits", c.text, reads[2].text, n);
  // Batch axes are treated as one axis, so their strides must form a single one.
  for (const Operand* view : {&c, &a, &b}) {
    for (size_t axis = 0; axis + 3 < view->shape.size(); ++axis) {
      if (view->strides[axis] != view->strides[axis + 1] * view->shape[axis + 1])
        return wrong("batches of several axes are not regular");
    }
  }
  return "";
}

std::string sum_misfit(const Operand& out, const Operand& in,
                       const std::map<std::string, int64_t>& attributes) {
  const int64_t axis = summed_axis(attributes);
  if (axis < 0 || size_t(axis) >= in.shape.size())
    return fmt::format("sum over axis {} of {}, which has {}", axis, in.text,
                       in.shape.size() == 1 ? "1 axis" : fmt::format("{} axes", in.shape.size()));
  std::vector<uint64_t> left = in.shape;
  left.erase(left.begin() + axis);
  return left == out.shape ? "" : fmt::format("sum of {} over axis {} to {}", in.text, axis, out.text);
}

}  // namespace

bool is_builtin(std::string_view function) { return find(function) != nullptr; }

std::vector<std::string_view> builtin_names() {
  std::vector<std::string_view> names;
  for (const BuiltinForm& form : forms) names.push_back(form.name);
  return names;
}

int64_t summed_axis(const std::map<std::string, int64_t>& attributes) {
  const auto given = attributes.find("axis");
  return given == attributes.end() ? 0 : given->second;
}

std::string misfit(std::string_view function, std::span<const Operand> writes, std::span<const Operand> reads,
                   const std::map<std::string, int64_t>& attributes) {
  const BuiltinForm* const form = find(function);
  if (!form) return "";
  if (writes.size() != form->writes || reads.size() < form->least_reads || reads.size() > form->most_reads)
    return fmt::format("{} writes {} and reads {} views, but is given {} and {}", function, form->writes,
                       form->least_reads == form->most_reads
                           ? fmt::to_string(form->most_reads)
                           : fmt::format("{} to {}", form->least_reads, form->most_reads),
                       writes.size(), reads.size());
  for (const auto& [name, value] : attributes) {
    if (name == form->attribute) continue;
    return fmt::format("{} has no attribute '{}'{}", function, name,
                       form->attribute.empty() ? std::string() : fmt::format(", but '{}'", form->attribute));
  }
  const Operand& out = writes[0];
  for (const Operand& in : reads) {
    if (in.dtype != out.dtype && function != "cast")
      return fmt::format("{} of {} to {}: the types differ; cast one", function, in.text, out.text);
  }
  if (function == "matmul" || function == "linear") return product_misfit(function, out, reads);
  if (function == "sum") return sum_misfit(out, reads[0], attributes);
  for (const Operand& in : reads) {
    if (in.shape != out.shape)
      return fmt::format("{} of {} to {}: the extents differ", function, in.text, out.text);
  }
  return "";
}

}  // namespace chorale::schedule
