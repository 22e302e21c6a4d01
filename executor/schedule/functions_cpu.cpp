// This file has the built-in functions on the CPU.

#include <algorithm>
#include <array>
#include <vector>

#include "chorale/device/convert.hpp"
#include "functions.hpp"

namespace chorale::schedule_run {
namespace {

/// Calls f(element offset in each of the views) for all elements of `shape`, row by row.
template <size_t N, class F>
void each_element(const std::vector<uint64_t>& shape,
                  const std::array<const std::vector<uint64_t>*, N>& strides, const F& f) {
  std::array<uint64_t, N> at{};
  std::vector<uint64_t> index(shape.size());
  for (const uint64_t extent : shape)
    if (extent == 0) return;
  for (;;) {
    f(at);
    size_t axis = shape.size();
    for (;;) {
      if (axis == 0) return;
      --axis;
      for (size_t view = 0; view < N; ++view) at[view] += (*strides[view])[axis];
      if (++index[axis] < shape[axis]) break;
      for (size_t view = 0; view < N; ++view) at[view] -= (*strides[view])[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

template <class T>
T* data(const TensorView& view) {
  return static_cast<T*>(view.data);
}

template <class T>
void multiply(const HostCall& call) {
  using A = Accumulator<T>;
  const Product of = product_of(call);
  const T* const bias = call.reads.size() == 3 ? data<T>(call.reads[2]) : nullptr;
  const uint64_t bias_stride = bias ? call.reads[2].strides[0] : 0;
  std::vector<A> row(of.n);
  for (uint64_t batch = 0; batch < of.batches; ++batch) {
    T* const c = data<T>(call.writes[0]) + batch * of.c.batch;
    const T* const a = data<T>(call.reads[0]) + batch * of.a.batch;
    const T* const b = data<T>(call.reads[1]) + batch * of.b.batch;
    for (uint64_t m = 0; m < of.m; ++m) {
      std::fill(row.begin(), row.end(), A(0));
      for (uint64_t k = 0; k < of.k; ++k) {
        const A left = widen(a[m * of.a.row + k * of.a.column]);
        const T* const right = b + k * of.b.row;
        for (uint64_t n = 0; n < of.n; ++n)
          row[n] =
              combine<ReduceOp::sum>(row[n], combine<ReduceOp::prod>(left, A(widen(right[n * of.b.column]))));
      }
      for (uint64_t n = 0; n < of.n; ++n) {
        if (bias) row[n] = combine<ReduceOp::sum>(row[n], A(widen(bias[n * bias_stride])));
        c[m * of.c.row + n * of.c.column] = narrow<T>(row[n]);
      }
    }
  }
}

template <class T>
void add(const HostCall& call) {
  const TensorView &out = call.writes[0], &a = call.reads[0], &b = call.reads[1];
  each_element<3>(out.shape, {&out.strides, &a.strides, &b.strides}, [&](const auto& at) {
    const Accumulator<T> left = widen(data<T>(a)[at[1]]), right = widen(data<T>(b)[at[2]]);
    data<T>(out)[at[0]] = narrow<T>(combine<ReduceOp::sum>(left, right));
  });
}

template <class T>
void sum(const HostCall& call) {
  const TensorView &out = call.writes[0], &in = call.reads[0];
  const size_t axis = size_t(call.attribute("axis", 0));
  const uint64_t extent = in.shape[axis], step = in.strides[axis];
  std::vector<uint64_t> strides = in.strides;
  strides.erase(strides.begin() + ptrdiff_t(axis));
  each_element<2>(out.shape, {&out.strides, &strides}, [&](const auto& at) {
    Accumulator<T> total = 0;
    for (uint64_t index = 0; index < extent; ++index)
      total = combine<ReduceOp::sum>(total, Accumulator<T>(widen(data<T>(in)[at[1] + index * step])));
    data<T>(out)[at[0]] = narrow<T>(total);
  });
}

template <class To>
void cast_to(const HostCall& call) {
  const TensorView &out = call.writes[0], &in = call.reads[0];
  with_dtype(in.dtype, [&](auto tag) {
    using From = typename decltype(tag)::type;
    each_element<2>(out.shape, {&out.strides, &in.strides},
                    [&](const auto& at) { data<To>(out)[at[0]] = convert<To>(data<From>(in)[at[1]]); });
  });
}

template <class T>
void fill(const HostCall& call) {
  const TensorView& out = call.writes[0];
  const T value = convert<T>(call.attribute("value", 0));
  each_element<1>(out.shape, {&out.strides}, [&](const auto& at) { data<T>(out)[at[0]] = value; });
}

}  // namespace

HostFunctions cpu_functions() {
  const auto typed = [](auto function) {
    return [function](const HostCall& call) {
      with_dtype(call.writes[0].dtype, [&](auto tag) { function(call, tag); });
    };
  };
  const auto cast =
      typed([](const HostCall& call, auto tag) { cast_to<typename decltype(tag)::type>(call); });
  const auto set = typed([](const HostCall& call, auto tag) { fill<typename decltype(tag)::type>(call); });
  const auto product =
      typed([](const HostCall& call, auto tag) { multiply<typename decltype(tag)::type>(call); });
  return {{"matmul", product},
          {"linear", product},
          {"add", typed([](const HostCall& call, auto tag) { add<typename decltype(tag)::type>(call); })},
          {"sum", typed([](const HostCall& call, auto tag) { sum<typename decltype(tag)::type>(call); })},
          {"cast", cast},
          {"copy", cast},
          {"zero", set},
          {"fill", set}};
}

}  // namespace chorale::schedule_run
