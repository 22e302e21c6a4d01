#include "stream.hpp"

#include "error.hpp"

namespace chorale::cuda {

OwnedStream::OwnedStream(const char* what) {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), what);
}
OwnedStream::~OwnedStream() {
  if (stream_) check_quietly(cudaStreamDestroy(stream_), "cudaStreamDestroy");
}

OwnedEvent::OwnedEvent(const char* what) {
  check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), what);
}
OwnedEvent::~OwnedEvent() {
  if (event_) check_quietly(cudaEventDestroy(event_), "cudaEventDestroy");
}

std::optional<bool> is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &status) == cudaSuccess) return status != cudaStreamCaptureStatusNone;
  cudaGetLastError();  // otherwise the program's next call reports it
  return std::nullopt;
}

}  // namespace chorale::cuda
