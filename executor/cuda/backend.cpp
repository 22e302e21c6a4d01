#include "executor/binding/backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "binding.hpp"
#include "chorale/config.hpp"
#include "executor/cuda/device/device.hpp"
#include "executor/cuda/device/device_memory.hpp"
#include "executor/cuda/device/error.hpp"
#include "executor/cuda/device/monitor.hpp"
#include "executor/cuda/device/stream.hpp"
#include "executor/cuda/kernels/kernels.hpp"
#include "executor/cuda/memory/registry.hpp"
#include "executor/world/collective_try.hpp"
#include "executor/world/group.hpp"

namespace chorale {
namespace cuda {
namespace {

class CudaBackend final : public Backend {
 public:
  CudaBackend(World& world, const Config& config)
      : world_(world),
        imports_(world),
        device_(imports_.devices()[size_t(world.rank())].ordinal),
        pool_(world, imports_),
        monitor_(world),
        whole_lines_(whole_lines_everywhere(world, imports_.devices())) {
    world::collective_try(world, [&] { abort_ = HostMapping(world.abort_word(), sizeof(AbortWord)); });
    common_.world = &world_;
    common_.device = device_;
    common_.imports = &imports_;
    common_.pool = &pool_;
    common_.monitor = &monitor_;
    common_.abort = abort_.device(world.abort_word());
    common_.timeout_ns = uint64_t(std::max<int64_t>(0, config.timeout.value.count()));
    common_.trace_launches = config.trace;
    common_.proxy = [this]() -> Proxy& {
      if (!proxy_) proxy_ = std::make_unique<Proxy>(world_, device_);
      return *proxy_;
    };
    common_.registry = [this]() -> Registry& {
      if (!registry_) registry_ = std::make_unique<Registry>(world_, imports_, pool_);
      return *registry_;
    };
    // Blocks that wait must see the stop before the world runs again.
    world_.group().before_reset(world_.rank(), this, [this] { quiesce(); });
  }

  ~CudaBackend() override { world_.group().before_reset(world_.rank(), this, {}); }

  std::unique_ptr<chorale::Binding> bind(const Plan& plan, const std::vector<ScratchUse>& use,
                                         const Call& call, const Arguments& arguments) override {
    const CurrentDevice on(device_);
    const OutsideCapture outside;
    return std::make_unique<CudaBinding>(common_, plan, use, call, arguments);
  }

  bool capturing(void* stream) override {
    // If CUDA does not say, a launch on the stream gives the better error.
    return is_capturing(static_cast<cudaStream_t>(stream)).value_or(false);
  }

  uint64_t scratch_of(const Plan& plan, const std::vector<ScratchUse>& use, const Call& call) override {
    return CudaBinding::scratch_of(plan, use, call);
  }

  bool drain() override {
    const CurrentDevice on(device_);
    const OutsideCapture outside;
    const cudaError_t result = cudaDeviceSynchronize();
    if (result != cudaSuccess)
      cudaGetLastError();  // another thread captures, or CUDA has failed and every later call reports it
    return result == cudaSuccess;
  }

  void require_bindable(void* stream) override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cuda::check(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status),
                "asking whether a stream captures");
    if (status == cudaStreamCaptureStatusNone) return;
    throw UsageError(
        "this plan is not bound to these arguments, and cannot be bound while the stream is captured: "
        "call Executor::prepare() with the same arguments on all ranks before the capture");
  }

  void* allocate(uint64_t bytes) override {
    const CurrentDevice on(device_);
    // The copy engines of another process are slower in memory that cudaMalloc() returned for other sizes
    // (docs/benchmarks.md).
    constexpr uint64_t page = uint64_t{2} << 20;
    const uint64_t whole = bytes < page ? std::max<uint64_t>(bytes, 1) : (bytes + page - 1) / page * page;
    allocated_.emplace_back(whole, fmt::format("{} bytes for the application", bytes));
    return allocated_.back().data();
  }

  bool binds_to_addresses() const override { return true; }

  bool has_whole_lines() const override { return whole_lines_; }

  bool can_publish(const Plan& plan, bool multicast) const override {
    return plan.ranks() <= Publication::most_ranks && !world_.group().several_hosts() &&
           !(multicast && SwitchUse(plan).any());
  }

  void copy_rows(Rows to, Rows from, uint64_t bytes, uint64_t rows, void* stream) override {
    const CurrentDevice on(device_);
    cuda::copy_rows({to.at, to.distance}, {from.at, from.distance}, bytes, rows,
                    static_cast<cudaStream_t>(stream),
                    "copying between a buffer and memory that peers access");
  }

  void scale(void* out, const void* in, uint64_t elements, DType dtype, const Factor& factor,
             void* stream) override {
    const CurrentDevice on(device_);
    cuda::check(enqueue_scale(out, in, elements, dtype, factor, static_cast<cudaStream_t>(stream)),
                "multiplying elements by a factor");
  }

  void check() override {
    try {
      world_.check();
    } catch (const RunError& error) {
      // Add the state of this rank's own blocks, unless the error already includes it.
      const std::string mine = monitor_.report();
      if (mine.empty() || std::string(error.what()).find(mine) != std::string::npos) throw;
      throw RunError(error.reason,
                     std::string(error.what()) + "\nrank " + std::to_string(world_.rank()) + " in " + mine);
    }
  }

  void synchronize(void* stream) override {
    const CurrentDevice on(device_);
    cuda::check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "waiting for a stream");
    monitor_.look();
    check();
  }

 private:
  /// Ends all work of this rank. Called before the world is reset.
  void quiesce() {
    const CurrentDevice on(device_);
    check_quietly(cudaDeviceSynchronize(), "waiting for running kernels");
    if (proxy_) proxy_->drop();
    // Their stop records belong to the world before the reset. Records seen later would stop the new one.
    monitor_.forget();
  }

  World& world_;
  HostMapping abort_;
  Imports imports_;
  const int device_;
  Pool pool_;
  std::vector<DeviceMemory> allocated_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<Proxy> proxy_;
  Common common_;
  Monitor monitor_;
  const bool whole_lines_;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<Backend> make_cuda_backend(World& world, const Config& config) {
  return std::make_unique<cuda::CudaBackend>(world, config);
}

}  // namespace chorale
