/// \file
/// This file provides host memory that kernels read and write.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace chorale::cuda {

/// Makes existing memory, such as the world's abort word, visible to the GPUs of this process.
///
/// CUDA registers whole pages, once per process. Several mappings of the same pages share the registration. A
/// registration that the application made itself is used and never removed.
class HostMapping {
 public:
  HostMapping() = default;
  /// \param memory must outlive this object
  /// \throws RunError if CUDA cannot register it
  HostMapping(void* memory, uint64_t bytes);
  HostMapping(HostMapping&& other) noexcept { *this = std::move(other); }
  HostMapping& operator=(HostMapping&& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
    return *this;
  }
  ~HostMapping();

  /// Returns the current device's address of `host`, which is in the mapped memory.
  template <class T>
  T* device(T* host) const {
    return static_cast<T*>(device_pointer(host));
  }

 private:
  void* device_pointer(void* host) const;

  uint64_t first_ = 0, last_ = 0;  // addresses of the first page and past the last page
};

/// Owns zeroed host memory that kernels see, as bytes.
class HostBytes {
 public:
  HostBytes() = default;
  explicit HostBytes(uint64_t bytes);
  HostBytes(HostBytes&& other) noexcept { *this = std::move(other); }
  HostBytes& operator=(HostBytes&& other) noexcept {
    std::swap(host_, other.host_);
    std::swap(device_, other.device_);
    return *this;
  }
  ~HostBytes();

  void* host() const { return host_; }
  void* device() const { return device_; }

 private:
  void* host_ = nullptr;
  void* device_ = nullptr;
};

/// Owns `count` zeroed, pinned elements for the host and the device that was current when it was made.
template <class T>
class HostArray {
  static_assert(std::is_trivially_copyable_v<T>, "a kernel shares its bytes");

 public:
  HostArray() = default;
  explicit HostArray(size_t count) : bytes_(count * sizeof(T)), count_(count) {}
  HostArray(HostArray&& other) noexcept { *this = std::move(other); }
  HostArray& operator=(HostArray&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(count_, other.count_);
    return *this;
  }

  T* host() const { return static_cast<T*>(bytes_.host()); }
  T* device() const { return static_cast<T*>(bytes_.device()); }
  size_t size() const { return count_; }
  T& operator[](size_t at) const { return host()[at]; }

 private:
  HostBytes bytes_;
  size_t count_ = 0;
};

}  // namespace chorale::cuda
