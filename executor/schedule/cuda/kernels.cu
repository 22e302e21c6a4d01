// These kernels do the elementwise work of host schedules. Work after the last transfer cannot overlap with
// any transfer, so sums of contiguous views use packs of 16 bytes. The other kernels are not tuned.

#include "chorale/device/convert.hpp"
#include "executor/cuda/device/enqueue.cuh"
#include "kernels.hpp"

namespace chorale::schedule_run {
namespace {

constexpr unsigned threads = 256, most_blocks = 1024;

struct Offsets {
  uint64_t out = 0, a = 0, b = 0;
};

__device__ Offsets offsets(const Elementwise& work, uint64_t index) {
  Offsets at;
  for (uint32_t axis = work.axes; axis-- > 0;) {
    const uint64_t here = index % work.shape[axis];
    index /= work.shape[axis];
    at.out += here * work.out.strides[axis];
    at.a += here * work.a.strides[axis];
    at.b += here * work.b.strides[axis];
  }
  return at;
}

template <class F>
__device__ void each(const Elementwise& work, const F& f) {
  const uint64_t stride = uint64_t(gridDim.x) * blockDim.x;
  for (uint64_t at = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; at < work.elements; at += stride)
    f(offsets(work, at));
}

template <class T>
__device__ T* data(const Strided& view) {
  return static_cast<T*>(view.data);
}

__global__ void add(Elementwise work) {
  with_dtype(work.out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(work, [&](const Offsets& at) {
      data<T>(work.out)[at.out] =
          narrow<T>(combine<ReduceOp::sum>(widen(data<T>(work.a)[at.a]), widen(data<T>(work.b)[at.b])));
    });
  });
}

__global__ void sum(Elementwise work) {
  with_dtype(work.out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(work, [&](const Offsets& at) {
      Accumulator<T> total = 0;
      for (uint64_t index = 0; index < work.extent; ++index)
        total =
            combine<ReduceOp::sum>(total, Accumulator<T>(widen(data<T>(work.a)[at.a + index * work.step])));
      data<T>(work.out)[at.out] = narrow<T>(total);
    });
  });
}

/// Holds the elements that one load takes.
template <class T>
struct alignas(16) Pack {
  static constexpr uint32_t count = 16 / sizeof(T);
  T values[count];
};

/// Returns true if elements are contiguous in all views, in whole packs.
bool packs(const Elementwise& work) {
  const uint64_t width = dtype_size(work.out.dtype);
  const auto good = [&](const Strided& view) {
    return view.data == nullptr || (view.strides[0] == 1 && reinterpret_cast<uintptr_t>(view.data) % 16 == 0);
  };
  return work.axes == 1 && good(work.out) && good(work.a) && good(work.b) &&
         work.elements * width % 16 == 0 && work.step * width % 16 == 0;
}

/// Calls f(tag, index of the first element) for each pack.
template <class F>
__device__ void each_pack(const Elementwise& work, const F& f) {
  with_dtype(work.out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const uint64_t stride = uint64_t(gridDim.x) * blockDim.x * Pack<T>::count;
    uint64_t at = (uint64_t(blockIdx.x) * blockDim.x + threadIdx.x) * Pack<T>::count;
    for (; at < work.elements; at += stride) f(tag, at);
  });
}

template <class T>
__device__ Pack<T>& pack(const Strided& view, uint64_t at) {
  return *reinterpret_cast<Pack<T>*>(data<T>(view) + at);
}

__global__ void add_packs(Elementwise work) {
  each_pack(work, [&](auto tag, uint64_t at) {
    using T = typename decltype(tag)::type;
    const Pack<T> a = pack<T>(work.a, at), b = pack<T>(work.b, at);
    Pack<T> result;
    for (uint32_t k = 0; k < Pack<T>::count; ++k)
      result.values[k] = narrow<T>(combine<ReduceOp::sum>(widen(a.values[k]), widen(b.values[k])));
    pack<T>(work.out, at) = result;
  });
}

__global__ void sum_packs(Elementwise work) {
  each_pack(work, [&](auto tag, uint64_t at) {
    using T = typename decltype(tag)::type;
    Accumulator<T> totals[Pack<T>::count] = {};
#pragma unroll 4
    for (uint64_t index = 0; index < work.extent; ++index) {
      const Pack<T> addend = pack<T>(work.a, at + index * work.step);
      for (uint32_t k = 0; k < Pack<T>::count; ++k)
        totals[k] = combine<ReduceOp::sum>(totals[k], Accumulator<T>(widen(addend.values[k])));
    }
    Pack<T> result;
    for (uint32_t k = 0; k < Pack<T>::count; ++k) result.values[k] = narrow<T>(totals[k]);
    pack<T>(work.out, at) = result;
  });
}

/// Holds the exact value of any type. With it the number of conversions is the number of types, not of pairs
/// of types.
struct Number {
  enum { real, integer, natural } kind;
  uint64_t bits;  ///< of an integer of either sign, or of a natural number
  double value;   ///< of a real number
};

__device__ Number load(const Strided& from, uint64_t at) {
  return with_dtype(from.dtype, [&](auto tag) -> Number {
    using T = typename decltype(tag)::type;
    const Accumulator<T> value = widen(data<T>(from)[at]);
    if constexpr (std::is_integral_v<T>) {
      return {std::is_same_v<T, uint64_t> ? Number::natural : Number::integer, uint64_t(value), 0};
    } else {
      return {Number::real, 0, double(value)};
    }
  });
}

__device__ void store(const Strided& to, uint64_t at, const Number& value) {
  with_dtype(to.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    data<T>(to)[at] = value.kind == Number::real      ? convert<T>(value.value)
                      : value.kind == Number::natural ? convert<T>(value.bits)
                                                      : convert<T>(int64_t(value.bits));
  });
}

__global__ void cast(Elementwise work) {
  each(work, [&](const Offsets& at) { store(work.out, at.out, load(work.a, at.a)); });
}

__global__ void copy(Elementwise work) {
  with_dtype(work.out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(work, [&](const Offsets& at) { data<T>(work.out)[at.out] = data<T>(work.a)[at.a]; });
  });
}

__global__ void fill(Elementwise work) {
  with_dtype(work.out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T value = convert<T>(work.value);
    each(work, [&](const Offsets& at) { data<T>(work.out)[at.out] = value; });
  });
}

__global__ void count_one(uint64_t* count) { ++*count; }

unsigned blocks_for(const Elementwise& work) {
  const uint64_t wanted = (work.elements + threads - 1) / threads;
  return unsigned(wanted < most_blocks ? wanted : most_blocks);
}

cudaError_t enqueue(void (*kernel)(Elementwise), const Elementwise& work, cudaStream_t stream) {
  if (!work.elements) return cudaSuccess;
  return cuda::enqueue(kernel, blocks_for(work), threads, stream, work);
}

}  // namespace

cudaError_t enqueue_add(const Elementwise& work, cudaStream_t stream) {
  return enqueue(packs(work) ? add_packs : add, work, stream);
}
cudaError_t enqueue_sum(const Elementwise& work, cudaStream_t stream) {
  return enqueue(packs(work) ? sum_packs : sum, work, stream);
}
cudaError_t enqueue_cast(const Elementwise& work, cudaStream_t stream) {
  return enqueue(work.out.dtype == work.a.dtype ? copy : cast, work, stream);
}
cudaError_t enqueue_fill(const Elementwise& work, cudaStream_t stream) { return enqueue(fill, work, stream); }
cudaError_t enqueue_count(uint64_t* count, cudaStream_t stream) {
  return cuda::enqueue(count_one, 1, 1, stream, count);
}

}  // namespace chorale::schedule_run
