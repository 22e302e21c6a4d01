// This kernel multiplies elements by a factor before a reduction, for operators such as PreMulSum of NCCL.
#include <cuda_runtime_api.h>

#include "chorale/device/numeric.hpp"
#include "chorale/factor.hpp"
#include "executor/cuda/device/enqueue.cuh"

namespace chorale::cuda {
namespace {

constexpr unsigned threads = 256, most_blocks = 1024;
constexpr uint64_t pack_bytes = 16;

/// Says how elements are loaded and stored.
enum class Access : uint8_t {
  packs,     ///< 16 bytes at a time, and the rest element by element
  elements,  ///< element by element
  bytes,     ///< byte by byte, because elements are at addresses that are no multiples of their size
};

/// Holds the elements that one load takes.
template <class T>
struct alignas(pack_bytes) Pack {
  static constexpr uint32_t count = pack_bytes / sizeof(T);
  T values[count];
};

/// Copies an element byte by byte.
template <class T>
__device__ void copy_bytes(char* to, const char* from) {
  for (uint32_t byte = 0; byte < sizeof(T); ++byte) to[byte] = from[byte];
}

/// Stores an element byte by byte. The bytes come from a 32-bit register by a permutation, because ptxas of
/// CUDA 13.0 takes the low byte of a 16-bit float for the number truncated to an integer (F2I.U8.F16.TRUNC).
template <class T>
__device__ void store_bytes(char* to, const T& value) {
  constexpr uint32_t words = (sizeof(T) + 3) / 4;
  uint32_t bits[words] = {};
  memcpy(bits, &value, sizeof(T));
  for (uint32_t byte = 0; byte < sizeof(T); ++byte)
    to[byte] = char(__byte_perm(bits[byte / 4], 0, 0x4440 + byte % 4));
}

template <class T>
__device__ void scale_elements(char* out, const char* in, uint64_t first, uint64_t n, T factor, bool whole) {
  const uint64_t stride = uint64_t(gridDim.x) * blockDim.x;
  for (uint64_t at = first + uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; at < n; at += stride) {
    if (whole) {
      reinterpret_cast<T*>(out)[at] = scaled(reinterpret_cast<const T*>(in)[at], factor);
    } else {
      T value;
      copy_bytes<T>(reinterpret_cast<char*>(&value), in + at * sizeof(T));
      value = scaled(value, factor);
      store_bytes(out + at * sizeof(T), value);
    }
  }
}

/// Multiplies the elements that are whole packs, and returns their number.
template <class T>
__device__ uint64_t scale_packs(char* out, const char* in, uint64_t n, T factor) {
  const uint64_t packs = n / Pack<T>::count, stride = uint64_t(gridDim.x) * blockDim.x;
  for (uint64_t at = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; at < packs; at += stride) {
    Pack<T> pack = reinterpret_cast<const Pack<T>*>(in)[at];
    for (uint32_t k = 0; k < Pack<T>::count; ++k) pack.values[k] = scaled(pack.values[k], factor);
    reinterpret_cast<Pack<T>*>(out)[at] = pack;
  }
  return packs * Pack<T>::count;
}

// A pointer to the factor is read here, because earlier work in the stream may write it.
__global__ void scale(char* out, const char* in, uint64_t n, DType dtype, Factor factor, Access access) {
  with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T by;
    copy_bytes<T>(reinterpret_cast<char*>(&by),
                  static_cast<const char*>(factor.at ? factor.at : static_cast<const void*>(&factor.value)));
    const uint64_t first = access == Access::packs ? scale_packs<T>(out, in, n, by) : 0;
    scale_elements<T>(out, in, first, n, by, access != Access::bytes);
  });
}

Access access_of(const void* out, const void* in, DType dtype) {
  const uint64_t address = reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(in);
  return address % pack_bytes == 0          ? Access::packs
         : address % dtype_size(dtype) == 0 ? Access::elements
                                            : Access::bytes;
}

}  // namespace

cudaError_t enqueue_scale(void* out, const void* in, uint64_t n, DType dtype, const Factor& factor,
                          cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  const Access access = access_of(out, in, dtype);
  const uint64_t at_once = access == Access::packs ? pack_bytes / dtype_size(dtype) : 1;
  const uint64_t wanted = (n / at_once + threads) / threads;
  const unsigned blocks = unsigned(wanted < most_blocks ? wanted : most_blocks);
  return enqueue(scale, blocks, threads, stream, static_cast<char*>(out), static_cast<const char*>(in), n,
                 dtype, factor, access);
}

}  // namespace chorale::cuda
