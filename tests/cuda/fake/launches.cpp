// Runs thread blocks on streams: the CPU's blocks run when the stream reaches them.

#include <mutex>
#include <utility>

#include "chorale/error.hpp"
#include "executor/binding/backend.hpp"
#include "streams.hpp"

namespace chorale {
namespace {

/// Holds the errors of work on streams.
class Failures {
 public:
  void keep(std::exception_ptr one) {
    const std::lock_guard lock(mutex_);
    if (!first_) first_ = one;
  }
  void raise() {
    const std::lock_guard lock(mutex_);
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

class OnStreams final : public Binding {
 public:
  OnStreams(std::unique_ptr<Binding> cpu, std::shared_ptr<Failures> failures)
      : Binding(cpu->call()), cpu_(std::move(cpu)), failures_(std::move(failures)) {}

  bool serves(const Arguments& arguments) override { return cpu_->serves(arguments); }
  uint64_t scratch() const override { return cpu_->scratch(); }
  void prepare(const Arguments& arguments, void*) override { arguments_ = arguments; }
  void add_trace(std::vector<TraceSpan>& spans) override { cpu_->add_trace(spans); }
  /// The plan and this object must outlive the enqueued work: see Executor.
  void run(const Plan& plan, void* stream) override {
    test::fake::enqueue(static_cast<cudaStream_t>(stream), [this, &plan, arguments = arguments_] {
      try {
        cpu_->prepare(arguments, nullptr);  // not before its turn, because earlier runs may still be running
        cpu_->run(plan, nullptr);
      } catch (...) {
        failures_->keep(std::current_exception());
      }
    });
  }

 private:
  const std::unique_ptr<Binding> cpu_;
  Arguments arguments_;
  const std::shared_ptr<Failures> failures_;
};

class StreamsBackend final : public Backend {
 public:
  StreamsBackend(World& world, const Config& config) : cpu_(make_cpu_backend(world, config)) {}

  std::unique_ptr<Binding> bind(const Plan& plan, const std::vector<ScratchUse>& use, const Call& call,
                                const Arguments& arguments) override {
    return std::make_unique<OnStreams>(cpu_->bind(plan, use, call, arguments), failures_);
  }
  uint64_t scratch_of(const Plan& plan, const std::vector<ScratchUse>& use, const Call& call) override {
    return cpu_->scratch_of(plan, use, call);
  }
  bool has_whole_lines() const override { return cpu_->has_whole_lines(); }
  void require_bindable(void* stream) override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status);
    if (status != cudaStreamCaptureStatusNone) throw UsageError("a stream is captured");
  }
  void copy_rows(Rows, Rows, uint64_t, uint64_t, void*) override {
    throw RunError(RunError::Reason::other, "this backend stages nothing");
  }
  void scale(void* out, const void* in, uint64_t elements, DType dtype, const Factor& factor,
             void* stream) override {
    test::fake::enqueue(static_cast<cudaStream_t>(stream),
                        [=, cpu = cpu_.get()] { cpu->scale(out, in, elements, dtype, factor, nullptr); });
  }
  void* allocate(uint64_t bytes) override { return cpu_->allocate(bytes); }
  void check() override {
    failures_->raise();
    cpu_->check();
  }
  void synchronize(void* stream) override {
    cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
    check();
  }

 private:
  const std::unique_ptr<Backend> cpu_;
  const std::shared_ptr<Failures> failures_ = std::make_shared<Failures>();
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(World& world, const Config& config) {
  return std::make_unique<StreamsBackend>(world, config);
}

}  // namespace chorale
