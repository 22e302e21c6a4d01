#include "stream.hpp"

#include <climits>

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

void copy_rows(Rows to, Rows from, uint64_t bytes, uint64_t rows, cudaStream_t stream,
               std::string_view what) {
  constexpr uint64_t most_pitch = INT_MAX;  // CUDA's limit
  if (rows > 1 && to.distance <= most_pitch && from.distance <= most_pitch) {
    check(
        cudaMemcpy2DAsync(to.at, to.distance, from.at, from.distance, bytes, rows, cudaMemcpyDefault, stream),
        what);
    return;
  }
  for (uint64_t row = 0; row < rows; ++row) {
    check(cudaMemcpyAsync(to.at + row * to.distance, from.at + row * from.distance, bytes, cudaMemcpyDefault,
                          stream),
          what);
  }
}

}  // namespace chorale::cuda
