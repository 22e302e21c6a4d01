/// \file
/// These classes own streams and events, and destroy them. A function asks whether a stream is captured.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace chorale::cuda {

/// Own a stream that the default stream does not wait for, or an event, on the device that was current at
/// construction. Destroying one waits for nothing.
class OwnedStream {
 public:
  /// \param what names its purpose in errors
  /// \throws RunError
  explicit OwnedStream(const char* what);
  OwnedStream(OwnedStream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  ~OwnedStream();
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class OwnedEvent {
 public:
  explicit OwnedEvent(const char* what);
  OwnedEvent(OwnedEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  OwnedEvent& operator=(OwnedEvent&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~OwnedEvent();
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Returns whether a graph captures `stream`. Returns nothing if CUDA does not say, as for the default stream
/// beside a capture.
std::optional<bool> is_capturing(cudaStream_t stream);

/// Describes rows of bytes.
struct Rows {
  char* at;
  uint64_t distance;  ///< from the start of a row to the start of the next one, in bytes
};

/// Enqueues a copy of `rows` rows of `bytes` bytes. The device of the stream must be current.
/// \param what  what is copied, for an error
/// \throws RunError
void copy_rows(Rows to, Rows from, uint64_t bytes, uint64_t rows, cudaStream_t stream, std::string_view what);

}  // namespace chorale::cuda
