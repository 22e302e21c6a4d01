/// \file
/// Makes and compares messages by kernels, because a host would take minutes.
#pragma once

#include <atomic>
#include <chorale/launch.cuh>
#include <cstdint>
#include <cstdio>

namespace tiles_test {

using namespace chorale;

inline std::atomic<int> failures{0};  // of all ranks of this process

inline void check(cudaError_t result) { chorale::detail::check_cuda(result, "a test"); }

CHORALE_HD uint32_t value_at(uint64_t message, uint64_t index) {
  uint64_t value = message * 1000003 + index + 1;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  return uint32_t((value ^ (value >> 27)) % 1000);
}

// These types define the expected result of each element.

struct Sent {
  uint64_t message;
  uint32_t factor = 1, addend = 0;
  __device__ uint32_t operator()(uint64_t at) const { return value_at(message, at) * factor + addend; }
};
struct SumOf {
  uint64_t message;
  int ranks;
  __device__ uint32_t operator()(uint64_t at) const {
    uint32_t sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += value_at(message + uint64_t(rank), at);
    return sum;
  }
};
struct Exchanged {
  uint64_t n, self;
  __device__ uint32_t operator()(uint64_t at) const { return value_at(at / n, self * n + at % n) + 1; }
};
struct Transposed {
  uint64_t message;
  uint32_t self, ranks, rows, cols;
  __device__ uint32_t operator()(uint64_t at) const {
    const uint64_t row = at % rows, col = at / rows % cols, from = at / rows / cols;
    return value_at(message + from, (row * ranks + self) * cols + col);
  }
};

static __global__ void fill_values(uint32_t* data, uint64_t n, uint64_t message) {
  for (uint64_t at = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; at < n;
       at += uint64_t(gridDim.x) * blockDim.x) {
    data[at] = value_at(message, at);
  }
}

/// Stores the lowest element that is not as expected in `first`.
template <class Expected>
__global__ void compare_values(const uint32_t* data, uint64_t n, Expected expected, unsigned long long* first,
                               uint32_t* wanted) {
  for (uint64_t at = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; at < n;
       at += uint64_t(gridDim.x) * blockDim.x) {
    if (data[at] == expected(at)) continue;
    if (atomicMin(first, static_cast<unsigned long long>(at)) > at) *wanted = expected(at);
  }
}

/// Returns memory on the GPU of the calling rank for the results of its comparisons. Ranks may be threads.
inline unsigned long long* room_of_findings() {
  thread_local unsigned long long* const room = [] {
    unsigned long long* made = nullptr;
    check(cudaMalloc(&made, 16));
    return made;
  }();
  return room;
}

/// Prints the first element that is wrong.
template <class Expected>
void expect_values(const char* what, cudaStream_t stream, const uint32_t* data, uint64_t n,
                   const Expected& expected) {
  unsigned long long* const found_at = room_of_findings();
  check(cudaMemsetAsync(found_at, 0xff, 16, stream));
  compare_values<<<512, 256, 0, stream>>>(data, n, expected, found_at,
                                          reinterpret_cast<uint32_t*>(found_at + 1));
  check(cudaGetLastError());
  unsigned long long found[2];
  check(cudaMemcpyAsync(found, found_at, sizeof found, cudaMemcpyDeviceToHost, stream));
  check(cudaStreamSynchronize(stream));
  if (found[0] == ~0ull) return;
  uint32_t got = 0;
  check(cudaMemcpy(&got, data + found[0], sizeof got, cudaMemcpyDeviceToHost));
  std::printf("%s: of %llu elements number %llu is %u, not %u\n", what, (unsigned long long)n, found[0], got,
              uint32_t(found[1]));
  ++failures;
}

class Buffer {
 public:
  explicit Buffer(uint64_t n) : n_(n) { check(cudaMalloc(&data_, n * 4 + 16)); }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;

  uint32_t* data() const { return data_; }
  void fill(cudaStream_t stream, uint64_t message) const {
    fill_values<<<512, 256, 0, stream>>>(data_, n_, message);
    check(cudaGetLastError());
  }
  void clear(cudaStream_t stream) const { check(cudaMemsetAsync(data_, 0xee, n_ * 4, stream)); }
  template <class Expected>
  void expect(const char* what, cudaStream_t stream, uint64_t n, const Expected& expected) const {
    expect_values(what, stream, data_, n, expected);
  }

 private:
  uint64_t n_;
  uint32_t* data_ = nullptr;
};

}  // namespace tiles_test
