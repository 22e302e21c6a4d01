#include "bench/overlap/data.hpp"
#include "chorale/device/numeric.hpp"

namespace chorale::overlap {
namespace {

__device__ uint64_t mixed(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

/// Returns the column within a period in which a row of A is not zero.
__device__ uint64_t place(Exact exact, uint64_t row) { return (row * 7 + exact.salt) % exact.period; }

__device__ int a_at(Exact exact, uint64_t row, uint64_t column) {
  if (column % exact.period != place(exact, row)) return 0;
  const int value = int(mixed(row * 0x9e3779b97f4a7c15u + column + exact.salt * 77) % 4);
  return value < 2 ? value - 2 : value - 1;  // gives -2, -1, 1 or 2
}

__device__ int b_at(Exact exact, uint64_t who, uint64_t row, uint64_t column) {
  return int(mixed((row + who * 1000003) * 0x632be59bd9b4e019u + column + exact.salt * 131) % 5) - 2;
}

template <class F>
__global__ void for_each(uint64_t n, F f) {
  for (uint64_t at = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; at < n;
       at += uint64_t(gridDim.x) * blockDim.x)
    f(at);
}

template <class F>
void enqueue(cudaStream_t stream, uint64_t n, const F& f) {
  for_each<<<2048, 256, 0, stream>>>(n, f);
  check(cudaGetLastError(), "a kernel over elements");
}

struct Fill {
  bf16* to;
  Part part;
  Exact exact;
  bool of_b;
  uint64_t who;
  __device__ void operator()(uint64_t at) const {
    const uint64_t row = part.row + at / part.width, column = part.column + at % part.width;
    to[at] = narrow<bf16>(float(of_b ? b_at(exact, who, row, column) : a_at(exact, row, column)));
  }
};

struct Random {
  bf16* to;
  uint64_t seed;
  __device__ void operator()(uint64_t at) const {
    to[at] = narrow<bf16>(float(mixed(at + seed * 0x9e3779b97f4a7c15u) >> 40) * 0x1p-23f - 1.0f);
  }
};

__device__ void count(uint64_t* wrong) { atomicAdd(reinterpret_cast<unsigned long long*>(wrong), 1ull); }

struct CompareA {
  const bf16* found;
  Part part;
  Exact exact;
  uint64_t* wrong;
  __device__ void operator()(uint64_t at) const {
    const uint64_t row = part.row + at / part.width, column = part.column + at % part.width;
    if (widen(found[at]) != float(a_at(exact, row, column))) count(wrong);
  }
};

struct CompareC {
  const bf16* found;
  Part part;
  Exact exact;
  uint64_t deep, who;
  uint64_t* wrong;
  __device__ void operator()(uint64_t at) const {
    const uint64_t row = part.row + at / part.width, column = part.column + at % part.width;
    int sum = 0;
    for (uint64_t k = place(exact, row); k < deep; k += exact.period)
      sum += a_at(exact, row, k) * b_at(exact, who, k, column);
    if (widen(found[at]) != float(sum)) count(wrong);
  }
};

}  // namespace

void enqueue_fill(cudaStream_t stream, void* to, Part part, Exact exact, bool of_b, uint64_t who) {
  enqueue(stream, part.height * part.width, Fill{static_cast<bf16*>(to), part, exact, of_b, who});
}

void enqueue_random(cudaStream_t stream, void* to, uint64_t elements, uint64_t seed) {
  enqueue(stream, elements, Random{static_cast<bf16*>(to), seed});
}

void enqueue_compare_a(cudaStream_t stream, const void* found, Part part, Exact exact, uint64_t* wrong) {
  enqueue(stream, part.height * part.width, CompareA{static_cast<const bf16*>(found), part, exact, wrong});
}

void enqueue_compare_c(cudaStream_t stream, const void* found, Part part, Exact exact, uint64_t deep,
                       uint64_t who, uint64_t* wrong) {
  enqueue(stream, part.height * part.width,
          CompareC{static_cast<const bf16*>(found), part, exact, deep, who, wrong});
}

}  // namespace chorale::overlap
