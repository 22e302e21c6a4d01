#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "device.hpp"
#include "outcome.hpp"

namespace chorale::nccl {
namespace {

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  cudaGetLastError();  // otherwise the program's next call reports it
  throw CallError(ncclUnhandledCudaError,
                  fmt::format("CUDA reports '{}' for {}", cudaGetErrorString(result), what));
}

class OnDevice final : public Device::Current {
 public:
  explicit OnDevice(int number) : number_(number) {
    check(cudaGetDevice(&before_), "the thread's GPU");
    if (before_ != number_) check(cudaSetDevice(number_), "the choice of a GPU");
  }
  ~OnDevice() override {
    if (before_ != number_) cudaSetDevice(before_);
  }

 private:
  const int number_;
  int before_ = 0;
};

/// Allows calls that a capture by any thread of the program would otherwise forbid.
class OutsideCapture {
 public:
  OutsideCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~OutsideCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  OutsideCapture(const OutsideCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

class GpuMemory final : public Memory {
 public:
  GpuMemory(int device, size_t bytes) : device_(device) {
    const OnDevice on(device_);
    const OutsideCapture outside;
    check(cudaMalloc(&at_, std::max<size_t>(bytes, 1)), "an allocation");
  }
  ~GpuMemory() override {
    const OutsideCapture outside;
    cudaFree(at_);
  }
  void* at() const override { return at_; }

 private:
  const int device_;
  void* at_ = nullptr;
};

/// Owns an event without a time.
class Event {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class Gpu final : public Device {
 public:
  explicit Gpu(int number) : number_(number) {
    const OnDevice on(number);
    last_.emplace();
    last_captured_.emplace();
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, number), "the properties of a GPU");
    name_ = properties.name;
  }

  int number() const override { return number_; }
  std::string name() const override { return name_; }
  std::unique_ptr<Current> make_current() override { return std::make_unique<OnDevice>(number_); }
  std::unique_ptr<Memory> allocate(size_t bytes) override {
    return std::make_unique<GpuMemory>(number_, bytes);
  }

  void copy(void* to, const void* from, size_t bytes, cudaStream_t stream) override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "a copy");
  }

  void begin(std::span<const cudaStream_t> streams) override {
    const cudaStream_t first = streams.front();
    const unsigned long long capture = capture_of(first);
    now_ = {first, capture, capture == 0 ? number_of(first) : none};
    // The stream of the last call may no longer exist, so the event was recorded behind that call.
    const Event* const before =
        capture == 0 ? (last_stream_ == none || last_stream_ == now_->number ? nullptr : &*last_)
        : capture == last_capture_ ? &*last_captured_
                                   : nullptr;
    if (before) check(cudaStreamWaitEvent(first, before->get(), 0), "an order of streams");
    for (const cudaStream_t other : streams.subspan(1)) {
      if (other == first) continue;
      check(cudaEventRecord(between_.event(), other), "an order of streams");
      check(cudaStreamWaitEvent(first, between_.event(), 0), "an order of streams");
    }
  }

  void end(std::span<const cudaStream_t> streams) override {
    const cudaStream_t first = streams.front();
    const Now now = *std::exchange(now_, std::nullopt);
    const Event& event = now.capture == 0 ? *last_ : *last_captured_;
    check(cudaEventRecord(event.get(), first), "an order of streams");
    for (const cudaStream_t other : streams.subspan(1)) {
      if (other != first) check(cudaStreamWaitEvent(other, event.get(), 0), "an order of streams");
    }
    if (now.capture == 0) last_stream_ = now.number;
    if (now.capture != 0) last_capture_ = now.capture;
  }

  bool capturing(cudaStream_t stream) override {
    return (now_ && stream == now_->stream ? now_->capture : capture_of(stream)) != 0;
  }

  void wait() override {
    const OnDevice on(number_);
    const OutsideCapture outside;
    if (last_stream_ != none)
      check(cudaEventSynchronize(last_->get()), "the end of the work of a communicator");
  }

  void wait_for_all() override {
    const OnDevice on(number_);
    const OutsideCapture outside;
    check(cudaDeviceSynchronize(), "the end of all work of a GPU");
  }

  void use_in_own_thread() override { check(cudaSetDevice(number_), "the choice of a GPU"); }

 private:
  /// Makes the event between two streams when it is first needed.
  struct Between {
    std::optional<Event> made;
    cudaEvent_t event() {
      if (!made) made.emplace();
      return made->get();
    }
  };

  static constexpr unsigned long long none = ~0ull;  ///< the number of no stream

  /// Returns the number of a stream, which CUDA gives to no later stream. To ask for it breaks a capture that
  /// the stream is in.
  static unsigned long long number_of(cudaStream_t stream) {
#if CUDART_VERSION >= 12000
    unsigned long long number = 0;
    if (cudaStreamGetId(stream, &number) == cudaSuccess) return number;
    cudaGetLastError();
#endif
    return reinterpret_cast<uintptr_t>(stream);
  }

  /// Returns the number of the capture that a stream is in; 0 if there is none.
  static unsigned long long capture_of(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long number = 0;
#if CUDART_VERSION >= 13000
    const cudaError_t result =
        cudaStreamGetCaptureInfo(stream, &status, &number, nullptr, nullptr, nullptr, nullptr);
#else
    const cudaError_t result = cudaStreamGetCaptureInfo(stream, &status, &number);
#endif
    if (result != cudaSuccess) {
      cudaGetLastError();  // the default stream beside a capture; the launch on it gives the better error
      return 0;
    }
    return status == cudaStreamCaptureStatusActive ? number : 0;
  }

  /// Holds what CUDA says about the stream of a call, from begin() to end(), so that it is asked only once.
  struct Now {
    cudaStream_t stream = nullptr;
    unsigned long long capture = 0, number = none;
  };

  const int number_;
  std::string name_;
  std::optional<Now> now_;
  std::optional<Event> last_, last_captured_;  ///< behind the last call, and behind the last captured call
  Between between_;
  unsigned long long last_stream_ = none;  ///< see number_of()
  unsigned long long last_capture_ = 0;
};

/// Returns the number of GPUs that this process sees.
/// \throws CallError if there is none
int require_gpus() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess && count > 0) return count;
  if (result != cudaSuccess) cudaGetLastError();  // otherwise the program's next call reports it
  throw CallError(
      ncclUnhandledCudaError,
      fmt::format("CUDA finds no GPU{}. Set CHORALE_BACKEND=cpu for buffers in host memory, which needs no "
                  "GPU and no driver",
                  result == cudaSuccess ? "" : fmt::format(": '{}'", cudaGetErrorString(result))));
}

/// ncclMemAlloc() rounds to this many bytes, because the copy engines of peers are slower in smaller
/// allocations.
constexpr size_t page = size_t(2) << 20;

}  // namespace

bool has_gpu() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count > 0;
  cudaGetLastError();
  return false;
}

int current_gpu_number() {
  int number = 0;
  if (cudaGetDevice(&number) == cudaSuccess) return number;
  cudaGetLastError();
  return 0;
}

std::unique_ptr<Device> current_gpu() {
  require_gpus();
  int number = 0;
  check(cudaGetDevice(&number), "the thread's GPU");
  return std::make_unique<Gpu>(number);
}

std::unique_ptr<Device> gpu_of_number(int number) {
  const int count = require_gpus();
  if (number < 0 || number >= count)
    throw CallError(ncclInvalidArgument,
                    fmt::format("there is no GPU {}, because this process sees {}", number, count));
  return std::make_unique<Gpu>(number);
}

void* allocate_for_program(size_t bytes) {
  void* memory = nullptr;
  const OutsideCapture outside;
  check(cudaMalloc(&memory, (std::max<size_t>(bytes, 1) + page - 1) / page * page), "an allocation");
  return memory;
}

void free_of_program(void* memory) {
  const OutsideCapture outside;
  check(cudaFree(memory), "the release of memory");
}

}  // namespace chorale::nccl
