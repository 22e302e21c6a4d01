// device_window() makes GPU memory that all ranks map. device_copy() copies data to GPU memory.

#include "executor/cuda/device/device_memory.hpp"
#include "executor/cuda/memory/allocation.hpp"
#include "executor/cuda/memory/peer_memory.hpp"
#include "executor/world/collective_try.hpp"
#include "executor/world/group.hpp"
#include "in_device_memory.hpp"

namespace chorale::transport {
namespace {

using cuda::check;

class Mapped final : public DeviceWindow {
 public:
  Mapped(World& world, uint64_t bytes)
      : world_(world),
        imports_(world),
        whole_lines_(cuda::whole_lines_everywhere(world, imports_.devices())),
        self_(world.rank()),
        bytes_(bytes) {
    world::collective_try(world, [&] {
      if (bytes == 0) return;
      memory_ = cuda::Allocation(bytes);
      check(cudaMemset(memory_.data(), 0, bytes), "a window");
      check(cudaStreamSynchronize(nullptr), "a window");
    });
    peers_ = cuda::PeerMemory::exchange(world, imports_, bytes != 0 ? memory_.data() : nullptr, bytes);
    world.barrier();  // all ranks have cleared their memory
    // A reset must wait for kernels that still wait in this window, because they poll the abort word seldom.
    // Otherwise they could miss the stop, and stop the world again after the reset.
    world.group().before_reset(self_, this, [this] {
      const cuda::CurrentDevice on(device());
      cuda::check_quietly(cudaDeviceSynchronize(), "the end of what still runs");
    });
  }
  ~Mapped() override { world_.group().before_reset(self_, this, {}); }

  char* at(int rank) const override {
    if (rank != self_) return peers_.at(rank);
    return bytes_ != 0 ? memory_.data() : nullptr;
  }
  uint64_t bytes(int rank) const override { return rank == self_ ? bytes_ : peers_.bytes(rank); }
  int device() const override { return imports_.devices()[size_t(self_)].ordinal; }

  bool whole_lines() const override { return whole_lines_; }

  void finish() const override {
    const cuda::CurrentDevice on(device());
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  void clear(uint64_t at, uint64_t bytes) const override {
    if (bytes == 0) return;
    const cuda::CurrentDevice on(device());
    check(cudaMemset(memory_.data() + at, 0, bytes), "cudaMemset");
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  }

 private:
  World& world_;
  cuda::Imports imports_;
  const bool whole_lines_;
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
  cuda::copy_to_device(copy->data(), data, bytes, "a table for kernels");
  return {copy, copy->data()};
}

}  // namespace chorale::transport
