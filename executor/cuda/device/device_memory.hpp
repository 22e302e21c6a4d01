/// \file
/// A DeviceMemory is memory on this rank's GPU that only the rank itself uses.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "error.hpp"

namespace chorale::cuda {

/// Copies from the host to the device, and returns when the data is there. cudaMemcpy() alone may return
/// earlier if `from` is not pinned, and a launch on a non-blocking stream then does not wait for the copy.
inline void copy_to_device(void* to, const void* from, uint64_t bytes, std::string_view what) {
  check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), what);
  check(cudaStreamSynchronize(nullptr), what);
}

/// Owns device memory that is zero when the constructor returns.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  /// \throws RunError resources
  DeviceMemory(uint64_t bytes, std::string_view what) {
    if (bytes == 0) return;
    check(cudaMalloc(reinterpret_cast<void**>(&data_), bytes), what);
    check(cudaMemset(data_, 0, bytes), what);
    check(cudaStreamSynchronize(nullptr), what);
  }
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~DeviceMemory() {
    if (data_) check_quietly(cudaFree(data_), "cudaFree");
  }

  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
};

}  // namespace chorale::cuda
