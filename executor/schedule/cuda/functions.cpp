// This file has the built-in functions on GPUs.

#include "executor/schedule/functions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cublas.hpp"
#include "executor/cuda/device/device.hpp"
#include "executor/cuda/device/error.hpp"
#include "executor/schedule/backend.hpp"
#include "kernels.hpp"

namespace chorale::schedule_run {
namespace {

cudaStream_t stream_of(const HostCall& call) { return static_cast<cudaStream_t>(call.stream); }

Strided strided(const TensorView& view) {
  Strided to{view.data, view.dtype, {}};
  std::copy(view.strides.begin(), view.strides.end(), to.strides);
  return to;
}

/// Merges neighbouring axes that are one axis in all views, because each axis costs a division per index.
void merge_axes(Elementwise& work) {
  uint32_t axes = 0;  // the number of merged axes so far; the last one is axes - 1
  const auto views = {&work.out, &work.a, &work.b};
  for (uint32_t axis = 0; axis < work.axes; ++axis) {
    const uint64_t extent = work.shape[axis];
    const bool one = axes > 0 && std::all_of(views.begin(), views.end(), [&](const Strided* view) {
                       return view->strides[axes - 1] == extent * view->strides[axis];
                     });
    if (one) --axes;
    work.shape[axes] = one ? work.shape[axes] * extent : extent;
    for (Strided* view : views) view->strides[axes] = view->strides[axis];
    ++axes;
  }
  work.axes = axes;
}

/// Returns the work of a call, with `out` and the first two reads unchanged.
Elementwise work_of(const HostCall& call) {
  const TensorView& out = call.writes[0];
  Elementwise work;
  work.axes = uint32_t(out.shape.size());
  std::copy(out.shape.begin(), out.shape.end(), work.shape);
  work.elements = out.elements();
  work.out = strided(out);
  if (call.reads.size() > 0) work.a = strided(call.reads[0]);
  if (call.reads.size() > 1) work.b = strided(call.reads[1]);
  return work;
}

cudaError_t sum(const HostCall& call) {
  const size_t axis = size_t(call.attribute("axis", 0));
  TensorView left = call.reads[0];
  left.strides.erase(left.strides.begin() + ptrdiff_t(axis));
  Elementwise work =
      work_of({.name = call.name, .writes = call.writes, .reads = {}, .attributes = call.attributes});
  work.a = strided(left);
  work.extent = call.reads[0].shape[axis];
  work.step = call.reads[0].strides[axis];
  merge_axes(work);
  return enqueue_sum(work, stream_of(call));
}

void check_launch(cudaError_t result, const HostCall& call) {
  if (result != cudaSuccess) cuda::check(result, fmt::format("launching the kernel of {}", call.name));
}

/// Writes the bias to every row of the result. The product is added to it afterwards.
void spread_bias(const HostCall& call) {
  Elementwise work =
      work_of({.name = call.name, .writes = call.writes, .reads = {}, .attributes = call.attributes});
  work.a = {call.reads[2].data, call.reads[2].dtype, {}};
  work.a.strides[work.axes - 1] = call.reads[2].strides[0];
  check_launch(enqueue_cast(work, stream_of(call)), call);
}

HostFunction launched(cudaError_t (*enqueue)(const HostCall&)) {
  return [enqueue](const HostCall& call) { check_launch(enqueue(call), call); };
}

}  // namespace

std::string cuda_misfit(const HostCall& call) {
  for (const auto& views : {call.writes, call.reads}) {
    for (const TensorView& view : views) {
      if (view.shape.size() > most_axes)
        return fmt::format("{} of {} on CUDA: at most {} axes", call.name, view.text(), most_axes);
    }
  }
  return call.name == "matmul" || call.name == "linear" ? Cublas::refuses(call) : "";
}

HostFunctions cuda_functions(uint32_t streams) {
  HostFunctions all;
  // cuBLAS's handle is made when it is first needed, because not every schedule multiplies.
  auto cublas = std::make_shared<std::unique_ptr<Cublas>>();
  const HostFunction product = [cublas, streams](const HostCall& call) {
    if (!*cublas) {
      const cuda::OutsideCapture outside;
      *cublas = std::make_unique<Cublas>(streams);
    }
    const bool bias = call.reads.size() == 3;
    if (bias) spread_bias(call);
    (*cublas)->multiply(call, bias);
  };
  all["matmul"] = all["linear"] = product;
  all["add"] = launched([](const HostCall& call) {
    Elementwise work = work_of(call);
    merge_axes(work);
    return enqueue_add(work, stream_of(call));
  });
  all["sum"] = launched(sum);
  all["cast"] = all["copy"] =
      launched([](const HostCall& call) { return enqueue_cast(work_of(call), stream_of(call)); });
  all["zero"] = all["fill"] = launched([](const HostCall& call) {
    Elementwise work = work_of(call);
    work.value = call.attribute("value", 0);
    return enqueue_fill(work, stream_of(call));
  });
  return all;
}

}  // namespace chorale::schedule_run
