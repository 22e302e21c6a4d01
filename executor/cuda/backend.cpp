#include "../backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "../world/group.hpp"
#include "binding.hpp"
#include "device.hpp"
#include "error.hpp"
#include "monitor.hpp"

namespace chorale {
namespace cuda {
namespace {

/// Told apart from memory that the executor frees: its owner is the application.
struct Allocated {
  void* memory = nullptr;
  explicit Allocated(void* of) : memory(of) {}
  Allocated(Allocated&& other) noexcept : memory(std::exchange(other.memory, nullptr)) {}
  Allocated& operator=(Allocated&&) = delete;
  ~Allocated() {
    if (memory) check_quietly(cudaFree(memory), "cudaFree");
  }
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(World& world, const Config& config)
      : world_(world),
        device_(current_device()),
        abort_(world.abort_word(), sizeof(AbortWord)),
        imports_(world),
        pool_(world, imports_) {
    common_.world = &world_;
    common_.device = device_;
    common_.imports = &imports_;
    common_.pool = &pool_;
    common_.abort = abort_.device(world.abort_word());
    common_.timeout_ns = uint64_t(std::max<int64_t>(0, config.timeout.value.count()));
    common_.trace_launches = config.trace;
    common_.proxy = [this]() -> Proxy& {
      if (!proxy_) proxy_ = std::make_unique<Proxy>(device_);
      return *proxy_;
    };
    monitor_ = std::make_unique<Monitor>(world_);
    // Blocks that wait must have seen the stop before the world runs on.
    world_.group().before_reset(world_.rank(), [this] { quiesce(); });
  }

  ~CudaBackend() override { world_.group().before_reset(world_.rank(), {}); }

  std::unique_ptr<chorale::Binding> bind(const Plan& plan, const Call& call, const Arguments& arguments) override {
    const CurrentDevice on(device_);
    const OutsideCapture outside;
    auto binding = std::make_unique<Watched>(*monitor_, common_, plan, call, arguments);
    return binding;
  }

  void quiesce() override {
    const CurrentDevice on(device_);
    check_quietly(cudaDeviceSynchronize(), "the end of what still runs");
    if (proxy_) proxy_->drop();
  }

  void require_bindable(void* stream) override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cuda::check(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status), "the state of a stream");
    if (status == cudaStreamCaptureStatusNone) return;
    throw UsageError(
        "this plan has not been bound to these arguments, which cannot be done while the stream is captured: call "
        "Executor::prepare() with the same arguments on all ranks before the capture");
  }

  void* allocate(uint64_t bytes) override {
    const CurrentDevice on(device_);
    void* memory = nullptr;
    cuda::check(cudaMalloc(&memory, std::max<uint64_t>(bytes, 1)), fmt::format("{} bytes for the application", bytes));
    allocated_.emplace_back(memory);
    cuda::check(cudaMemset(memory, 0, bytes), "zeros for the application");
    cuda::check(cudaStreamSynchronize(nullptr), "zeros for the application");
    return memory;
  }

  void check() override {
    try {
      world_.check();
    } catch (const RunError& error) {
      // Where this rank's own blocks stood, unless that is what the error says already.
      const std::string mine = monitor_->report();
      if (mine.empty() || std::string(error.what()).find(mine) != std::string::npos) throw;
      throw RunError(error.reason, std::string(error.what()) + "\nrank " + std::to_string(world_.rank()) + " in " + mine);
    }
    if (proxy_) {
      if (const std::string why = proxy_->error(); !why.empty()) throw RunError(RunError::Reason::other, why);
    }
  }

  void synchronize(void* stream) override {
    const CurrentDevice on(device_);
    cuda::check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "the end of a stream's work");
    monitor_->look();
    check();
  }

 private:
  /// A binding that the monitor looks at while it lives.
  struct Watched final : chorale::Binding {
    Watched(Monitor& monitor, const Common& common, const Plan& plan, const Call& call, const Arguments& arguments)
        : chorale::Binding(call), device(common.device), monitor_(monitor), binding(common, plan, call, arguments) {
      monitor_.add(&binding);
    }
    ~Watched() override { monitor_.remove(&binding); }
    bool serves(const Arguments& arguments) override { return binding.serves(arguments); }
    void prepare(const Arguments& arguments) override {
      const CurrentDevice on(device);
      binding.prepare(arguments);
    }
    void run(const Plan& plan, const Arguments& arguments, void* stream) override {
      const CurrentDevice on(device);
      binding.run(plan, arguments, stream);
    }
    void add_trace(std::vector<TraceSpan>& spans) override {
      const CurrentDevice on(device);
      binding.add_trace(spans);
    }
    int device;
    Monitor& monitor_;
    cuda::Binding binding;
  };

  World& world_;
  int device_;
  HostMapping abort_;
  Imports imports_;
  Pool pool_;
  std::vector<Allocated> allocated_;
  std::unique_ptr<Proxy> proxy_;
  Common common_;
  std::unique_ptr<Monitor> monitor_;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<Backend> make_cuda_backend(World& world, const Config& config) {
  return std::make_unique<cuda::CudaBackend>(world, config);
}

}  // namespace chorale
