/// \file
/// These classes own streams and events, and destroy them. A function asks whether a stream is captured.
#pragma once

#include <cuda_runtime_api.h>

#include <optional>
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

}  // namespace chorale::cuda
