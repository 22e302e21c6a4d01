#include "stream_order.hpp"

#ifdef CHORALE_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace chorale::torch_backend {

uint64_t capture_of(const c10::Stream& stream) {
#ifdef CHORALE_WITH_CUDA
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long number = 0;
  const auto handle = static_cast<cudaStream_t>(stream.native_handle());
#if CUDART_VERSION >= 13000
  const cudaError_t result =
      cudaStreamGetCaptureInfo(handle, &status, &number, nullptr, nullptr, nullptr, nullptr);
#else
  const cudaError_t result = cudaStreamGetCaptureInfo(handle, &status, &number);
#endif
  if (result == cudaSuccess) return status == cudaStreamCaptureStatusNone ? 0 : number;
  cudaGetLastError();  // the query fails for the default stream while another one is captured
#else
  (void)stream;
#endif
  return 0;
}

void StreamOrder::before_call(const c10::Stream& stream) {
  capture_ = capture_of(stream);
  if (capture_ != 0 && capture_ != captured_in_) return;
  const Call& last = capture_ == 0 ? eager_ : captured_;
  if (last.stream && *last.stream != stream) last.end->block(stream);
}

void StreamOrder::after_call(const c10::Stream& stream) {
  Call& last = capture_ == 0 ? eager_ : captured_;
  if (capture_ != 0) captured_in_ = capture_;
  if (!last.end) last.end.emplace(stream.device_type());
  last.end->record(stream);
  last.stream = stream;
}

}  // namespace chorale::torch_backend
