// Makes a GPU the device of a rank. It uses only the runtime API, because the executor runs the collectives.

#include "tools/command.hpp"
#include "tools/device.hpp"

#if defined(CHORALE_WITH_CUDA)

#include <cuda_runtime.h>

#include <chrono>
#include <thread>
#include <vector>

#include "chorale/error.hpp"

namespace chorale::tools {
namespace {

constexpr uint64_t staged_bytes = uint64_t(4) << 20;

void must(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  throw RunError(RunError::Reason::resources, std::string(what) + " failed: " + cudaGetErrorString(result) +
                                                  " (" + cudaGetErrorName(result) + ")");
}

class CudaGraph : public Graph {
 public:
  CudaGraph(cudaGraph_t graph, cudaStream_t stream) : stream_(stream) {
    const cudaError_t result = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    must(result, "cudaGraphInstantiate");
    must(cudaGraphUpload(executable_, stream), "cudaGraphUpload");
  }
  ~CudaGraph() override { cudaGraphExecDestroy(executable_); }
  void launch() override { must(cudaGraphLaunch(executable_, stream_), "cudaGraphLaunch"); }

 private:
  cudaGraphExec_t executable_ = nullptr;
  cudaStream_t stream_;
};

/// Holds the pinned memory and the stream with which one thread moves pieces.
struct Stage {
  std::byte* memory = nullptr;
  cudaStream_t stream = nullptr;
};

class GpuDevice : public Device {
 public:
  explicit GpuDevice(const World& world) : stages_(piece_threads(world.ranks())) {
    int count = 0;
    must(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    if (count == 0) throw RunError(RunError::Reason::resources, "this machine has no CUDA device");
    number_ = world.rank() % count;
    must(cudaSetDevice(number_), "cudaSetDevice");
    // The stream is not ordered with the default stream, because libraries and the executor may use the
    // default stream.
    must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    must(cudaEventCreate(&start_), "cudaEventCreate");
    must(cudaEventCreate(&stop_), "cudaEventCreate");
  }
  ~GpuDevice() override {
    for (const Stage& stage : stages_) {
      if (stage.stream) cudaStreamDestroy(stage.stream);
      if (stage.memory) cudaFreeHost(stage.memory);
    }
    for (std::byte* const memory : owned_) cudaFree(memory);
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
    cudaStreamDestroy(stream_);
  }

  std::byte* allocate(uint64_t bytes) override {
    void* memory = nullptr;
    must(cudaMalloc(&memory, bytes ? bytes : 1), ("cudaMalloc of " + format_bytes(bytes) + " bytes").c_str());
    owned_.push_back(static_cast<std::byte*>(memory));
    return owned_.back();
  }
  void set(std::byte* to, int value, uint64_t bytes) override {
    must(cudaMemsetAsync(to, value, bytes, stream_), "cudaMemsetAsync");
    must(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }
  void fill(std::byte* to, uint64_t bytes, const Make& make) override {
    in_pieces(bytes, staged_bytes, unsigned(stages_.size()),
              [&](unsigned thread, uint64_t first, uint64_t size) {
                Stage& stage = stage_of(thread);
                make(stage.memory, first, size);
                copy_by(stage, to + first, stage.memory, size);
              });
  }
  void look(const std::byte* from, uint64_t bytes, const Look& look) override {
    in_pieces(bytes, staged_bytes, unsigned(stages_.size()),
              [&](unsigned thread, uint64_t first, uint64_t size) {
                Stage& stage = stage_of(thread);
                copy_by(stage, stage.memory, from + first, size);
                look(stage.memory, first, size);
              });
  }

  void* stream() override { return stream_; }
  void copy(std::byte* to, const std::byte* from, uint64_t bytes) override {
    must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "cudaMemcpyAsync");
  }
  void finish(World& world) override {
    const auto start = std::chrono::steady_clock::now();
    const std::chrono::nanoseconds timeout = world.timeout();
    for (cudaError_t state; (state = cudaStreamQuery(stream_)) != cudaSuccess;) {
      if (state != cudaErrorNotReady) must(state, "the work on the stream");
      world.check();
      if (timeout.count() && std::chrono::steady_clock::now() - start > timeout) {
        throw RunError(RunError::Reason::timed_out, "rank " + std::to_string(world.rank()) +
                                                        ": the work on the stream has not ended in time");
      }
      std::this_thread::yield();
    }
  }
  double time_us(const std::function<void()>& enqueue, const std::function<void()>& wait) override {
    must(cudaEventRecord(start_, stream_), "cudaEventRecord");
    enqueue();
    must(cudaEventRecord(stop_, stream_), "cudaEventRecord");
    wait();
    float milliseconds = 0;
    must(cudaEventElapsedTime(&milliseconds, start_, stop_), "cudaEventElapsedTime");
    return double(milliseconds) * 1e3;
  }
  std::unique_ptr<Graph> capture(const std::function<void()>& enqueue) override {
    must(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    cudaGraph_t graph = nullptr;
    try {
      enqueue();
    } catch (...) {
      if (cudaStreamEndCapture(stream_, &graph) == cudaSuccess) cudaGraphDestroy(graph);
      cudaGetLastError();  // so that the next call does not report the capture that failed
      throw;
    }
    must(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    return std::make_unique<CudaGraph>(graph, stream_);
  }

 private:
  /// Returns a thread's stage, which the first thread that uses it makes. The threads are new each time, so
  /// every call sets the device.
  Stage& stage_of(unsigned thread) {
    must(cudaSetDevice(number_), "cudaSetDevice");
    Stage& stage = stages_[thread];
    if (!stage.memory) {
      must(cudaMallocHost(reinterpret_cast<void**>(&stage.memory), staged_bytes), "cudaMallocHost");
      must(cudaStreamCreateWithFlags(&stage.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    }
    return stage;
  }
  static void copy_by(const Stage& stage, std::byte* to, const std::byte* from, uint64_t bytes) {
    must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stage.stream), "cudaMemcpyAsync");
    must(cudaStreamSynchronize(stage.stream), "cudaStreamSynchronize");
  }

  int number_ = 0;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
  std::vector<Stage> stages_;
  std::vector<std::byte*> owned_;
};

}  // namespace

std::unique_ptr<Device> make_cuda_device(const World& world) { return std::make_unique<GpuDevice>(world); }

}  // namespace chorale::tools

#else

namespace chorale::tools {

std::unique_ptr<Device> make_cuda_device(const World&) {
  throw Failure(Exit::command_wrong, "this chorale was built without CUDA",
                "build it where nvcc is found, or use --backend cpu");
}

}  // namespace chorale::tools

#endif
