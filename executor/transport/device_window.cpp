// Memory of GPUs that all ranks map, and copies for kernels.

#include "../cuda/allocation.hpp"
#include "../cuda/device_memory.hpp"
#include "../cuda/peer_memory.hpp"
#include "in_device_memory.hpp"

namespace chorale::transport {
namespace {

using cuda::check;

class Mapped final : public DeviceWindow {
 public:
  Mapped(World& world, uint64_t bytes) : imports_(world), self_(world.rank()), bytes_(bytes) {
    if (bytes != 0) {
      memory_ = cuda::Allocation(bytes);
      check(cudaMemset(memory_.data(), 0, bytes), "a window");
      check(cudaStreamSynchronize(nullptr), "a window");
    }
    peers_ = cuda::PeerMemory::exchange(world, imports_, bytes != 0 ? memory_.data() : nullptr, bytes);
    world.barrier();  // all have cleared theirs
  }

  char* at(int rank) const override {
    if (rank != self_) return peers_.at(rank);
    return bytes_ != 0 ? memory_.data() : nullptr;
  }
  uint64_t bytes(int rank) const override { return rank == self_ ? bytes_ : peers_.bytes(rank); }

 private:
  cuda::Imports imports_;
  cuda::Allocation memory_;
  cuda::PeerMemory peers_;
  const int self_;
  const uint64_t bytes_;
};

}  // namespace

std::unique_ptr<DeviceWindow> device_window(World& world, uint64_t bytes) {
  return std::make_unique<Mapped>(world, bytes);
}

std::shared_ptr<const void> device_copy(const void* data, uint64_t bytes) {
  const auto copy = std::make_shared<cuda::DeviceMemory>(bytes, "a table for kernels");
  check(cudaMemcpy(copy->data(), data, bytes, cudaMemcpyHostToDevice), "a table for kernels");
  return {copy, copy->data()};
}

}  // namespace chorale::transport
