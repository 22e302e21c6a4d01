#include "device.hpp"

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "outcome.hpp"

namespace chorale::nccl {
namespace {

class HostMemory final : public Memory {
 public:
  explicit HostMemory(size_t bytes) : bytes_(bytes) {}
  void* at() const override { return const_cast<std::byte*>(bytes_.data()); }

 private:
  std::vector<std::byte> bytes_;
};

/// On the CPU calls return when they have ended, so there is nothing to order.
class Cpu final : public Device {
 public:
  int number() const override { return 0; }
  std::string name() const override { return ""; }
  std::unique_ptr<Current> make_current() override { return std::make_unique<Current>(); }
  std::unique_ptr<Memory> allocate(size_t bytes) override { return std::make_unique<HostMemory>(bytes); }
  void copy(void* to, const void* from, size_t bytes, cudaStream_t) override {
    std::memmove(to, from, bytes);
  }
  void begin(std::span<const cudaStream_t>) override {}
  void end(std::span<const cudaStream_t>) override {}
  bool capturing(cudaStream_t) override { return false; }
  void wait() override {}
  void wait_for_all() override {}
  void use_in_own_thread() override {}
};

}  // namespace

std::unique_ptr<Device> current_device(Backend backend) {
  if (backend == Backend::cpu) return std::make_unique<Cpu>();
  return current_gpu();
}

std::unique_ptr<Device> device_of_number(Backend backend, int number) {
  if (backend == Backend::cuda) return gpu_of_number(number);
  if (number < 0) throw CallError(ncclInvalidArgument, fmt::format("there is no device {}", number));
  return std::make_unique<Cpu>();
}

}  // namespace chorale::nccl
