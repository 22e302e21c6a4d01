#include "functions.hpp"

#include <utility>

#include "chorale/schedule/builtins.hpp"

namespace chorale::schedule_run {
namespace {

Product::Strides strides_of(const TensorView& view, bool transposed) {
  const size_t rank = view.shape.size();
  Product::Strides strides{rank > 2 ? view.strides[rank - 3] : 0, view.strides[rank - 2],
                           view.strides[rank - 1]};
  if (transposed) std::swap(strides.row, strides.column);
  return strides;
}

}  // namespace

// A schedule cannot give a function this name, because its names are single words.
std::string built_in_name(std::string_view function) { return "built-in " + std::string(function); }

std::string misfit(const HostCall& call) {
  const auto operands = [](std::span<const TensorView> views) {
    std::vector<schedule::Operand> list;
    for (const TensorView& view : views) list.push_back({view.dtype, view.shape, view.strides, view.text()});
    return list;
  };
  return schedule::misfit(call.name, operands(call.writes), operands(call.reads), call.attributes);
}

Product product_of(const HostCall& call) {
  const bool linear = call.name == "linear";
  const TensorView &c = call.writes[0], &a = call.reads[0], &b = call.reads[1];
  Product product;
  const size_t rank = c.shape.size();
  for (size_t axis = 0; axis + 2 < rank; ++axis) product.batches *= c.shape[axis];
  product.m = c.shape[rank - 2];
  product.n = c.shape[rank - 1];
  product.k = a.shape[rank - 1];
  product.transposed = linear;
  product.c = strides_of(c, false);
  product.a = strides_of(a, false);
  product.b = strides_of(b, linear);
  return product;
}

}  // namespace chorale::schedule_run

namespace chorale {

uint64_t TensorView::elements() const {
  uint64_t count = 1;
  for (const uint64_t extent : shape) count *= extent;
  return count;
}

bool TensorView::contiguous() const {
  uint64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] != 1 && strides[axis] != stride) return false;
    stride *= shape[axis];
  }
  return true;
}

std::string TensorView::text() const {
  std::string text = std::string(dtype_name(dtype)) + "[";
  for (size_t axis = 0; axis < shape.size(); ++axis) text += (axis ? ", " : "") + std::to_string(shape[axis]);
  return text + "]";
}

int64_t HostCall::attribute(std::string_view which, int64_t otherwise) const {
  const auto found = attributes.find(std::string(which));
  return found == attributes.end() ? otherwise : found->second;
}

}  // namespace chorale
