#include "tests/faults/device.hpp"

#include <cuda_runtime_api.h>

#include "tests/cuda/ranks.hpp"
#include "tests/cuda/share_gpus.hpp"

namespace chorale::test {
namespace {

class Cuda final : public Device {
 public:
  std::string name() const override { return "cuda"; }
  std::string why_not() const override {
    if (gpus() == 0) return "there is no GPU on this machine";
    return gpus_suffice(2) ? "" : "there is one GPU, which ranks do not share without --share-gpus";
  }
  int ranks() const override { return gpus() >= 4 ? 4 : 2; }

  std::chrono::nanoseconds join_deadline(std::chrono::nanoseconds deadline) const override {
    return deadline.count() == 0 ? deadline : deadline + std::chrono::seconds(2);
  }

  /// Returns 100 launches if ranks share a GPU. As threads, ranks would stop each other if one filled its
  /// queue, which holds about a thousand commands. As processes they take turns at each.
  int many() const override { return gpus_are_shared(ranks()) ? 100 : 1000; }

  void use(int rank) override {
    [[maybe_unused]] static const bool may_share = [this] {
      if (gpus_are_shared(ranks())) let_threads_share_gpus();
      return true;
    }();
    cuda::check(cudaSetDevice(rank % gpus()), "cudaSetDevice");
    cuda::check(cudaFree(nullptr), "the context");
  }

  std::shared_ptr<void> make_stream() override {
    cudaStream_t stream = nullptr;
    cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    return {stream, [](void* of) { cudaStreamDestroy(static_cast<cudaStream_t>(of)); }};
  }

  void wait(void* stream) override {
    cuda::check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "the end of a stream");
  }

  std::shared_ptr<void> allocate(uint64_t bytes) override {
    void* memory = nullptr;
    cuda::check(cudaMalloc(&memory, bytes), "cudaMalloc");
    return {memory, [](void* of) { cudaFree(of); }};
  }

  void copy(void* to, const void* from, uint64_t bytes, void* stream) override {
    cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(stream)),
                "a copy");
  }

  uint64_t free_bytes() override {
    size_t free = 0, total = 0;
    cuda::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return free;
  }
};

}  // namespace

Device& device() {
  static Cuda cuda;
  return cuda;
}

}  // namespace chorale::test
