#include "functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace chorale::hostrun {
namespace {

struct Form {
  size_t writes, reads, most_reads;
};

const std::map<std::string, Form, std::less<>> forms = {
    {"matmul", {1, 2, 2}}, {"linear", {1, 2, 3}}, {"add", {1, 2, 2}},  {"sum", {1, 1, 1}},
    {"cast", {1, 1, 1}},   {"copy", {1, 1, 1}},   {"zero", {1, 0, 0}}, {"fill", {1, 0, 0}}};

std::string product_misfit(const HostCall& call) {
  const bool linear = call.name == "linear";
  const TensorView &c = call.writes[0], &a = call.reads[0], &b = call.reads[1];
  const auto wrong = [&](const char* what) {
    return fmt::format("{} of {} and {} to {}: {}", call.name, a.text(), b.text(), c.text(), what);
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
  if (call.reads.size() == 3 && (call.reads[2].shape.size() != 1 || call.reads[2].shape[0] != n))
    return fmt::format("linear to {} with a bias of {}: one of [{}] fits", c.text(), call.reads[2].text(), n);
  // Batches as one axis: what is between them must be regular.
  for (const TensorView* view : {&c, &a, &b}) {
    for (size_t axis = 0; axis + 3 < view->shape.size(); ++axis) {
      if (view->strides[axis] != view->strides[axis + 1] * view->shape[axis + 1])
        return wrong("batches of several axes are not regular");
    }
  }
  return "";
}

Product::Strides strides_of(const TensorView& view, bool transposed) {
  const size_t rank = view.shape.size();
  Product::Strides strides{rank > 2 ? view.strides[rank - 3] : 0, view.strides[rank - 2],
                           view.strides[rank - 1]};
  if (transposed) std::swap(strides.row, strides.column);
  return strides;
}

}  // namespace

std::string misfit(const HostCall& call) {
  const auto form = forms.find(call.name);
  if (form == forms.end()) return "";
  const auto& [writes, reads, most_reads] = form->second;
  if (call.writes.size() != writes || call.reads.size() < reads || call.reads.size() > most_reads)
    return fmt::format("{} writes {} and reads {} views, but is given {} and {}", call.name, writes, reads,
                       call.writes.size(), call.reads.size());
  const TensorView& out = call.writes[0];
  for (const TensorView& in : call.reads) {
    if (in.dtype != out.dtype && call.name != "cast")
      return fmt::format("{} of {} to {}: the types differ; cast one", call.name, in.text(), out.text());
  }
  if (call.name == "matmul" || call.name == "linear") return product_misfit(call);
  if (call.name == "sum") {
    const TensorView& in = call.reads[0];
    const int64_t axis = call.attribute("axis", 0);
    if (axis < 0 || size_t(axis) >= in.shape.size())
      return fmt::format("sum over axis {} of {}", axis, in.text());
    std::vector<uint64_t> left = in.shape;
    left.erase(left.begin() + axis);
    return left == out.shape ? "" : fmt::format("sum of {} over axis {} to {}", in.text(), axis, out.text());
  }
  for (const TensorView& in : call.reads) {
    if (in.shape != out.shape)
      return fmt::format("{} of {} to {}: the extents differ", call.name, in.text(), out.text());
  }
  return "";
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

}  // namespace chorale::hostrun

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
