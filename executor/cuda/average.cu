// The end of an average: a kernel of its own, since only it divides, and after the last operation of every block.
#include <cuda_runtime_api.h>

#include "chorale/device/numeric.hpp"

namespace chorale::cuda {
namespace {

constexpr unsigned threads = 256, most_blocks = 512;

template <class T>
__global__ void divide(T* elements, uint64_t n, uint32_t ranks) {
  const uint64_t stride = uint64_t(gridDim.x) * blockDim.x;
  for (uint64_t at = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; at < n; at += stride) {
    elements[at] = narrow<T>(finish_avg<T>(widen(elements[at]), ranks));
  }
}

template <class T>
void launch(void* elements, uint64_t n, uint32_t ranks, cudaStream_t stream) {
  const uint64_t wanted = (n + threads - 1) / threads;
  divide<T><<<unsigned(wanted < most_blocks ? wanted : most_blocks), threads, 0, stream>>>(
      static_cast<T*>(elements), n, ranks);
}

}  // namespace

void enqueue_average(void* elements, uint64_t n, DType dtype, uint32_t ranks, cudaStream_t stream) {
  if (n == 0) return;
  switch (dtype) {
    case DType::f32:
      return launch<float>(elements, n, ranks, stream);
    case DType::f16:
      return launch<f16>(elements, n, ranks, stream);
    case DType::bf16:
      return launch<bf16>(elements, n, ranks, stream);
    case DType::f64:
      return launch<double>(elements, n, ranks, stream);
    case DType::i32:
      return launch<int32_t>(elements, n, ranks, stream);
    case DType::u32:
      return launch<uint32_t>(elements, n, ranks, stream);
    case DType::i64:
      return launch<int64_t>(elements, n, ranks, stream);
    case DType::u8:
      return launch<uint8_t>(elements, n, ranks, stream);
    case DType::i8:
      return launch<int8_t>(elements, n, ranks, stream);
    case DType::fp8_e4m3:
      return launch<fp8_e4m3>(elements, n, ranks, stream);
    case DType::fp8_e5m2:
      return launch<fp8_e5m2>(elements, n, ranks, stream);
  }
}

}  // namespace chorale::cuda
