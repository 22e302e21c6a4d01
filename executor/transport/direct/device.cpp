// This transport links GPUs that map each other's memory.

#include "executor/cuda/device/device.hpp"

#include "executor/cuda/device/error.hpp"
#include "executor/cuda/device/host_words.hpp"
#include "executor/transport/in_device_memory.hpp"
#include "executor/transport/kinds.hpp"
#include "executor/transport/rings.hpp"
#include "executor/world/collective_try.hpp"

namespace chorale::transport {
namespace {

class DeviceDirect final : public Rings {
 public:
  DeviceDirect(World& world, const Geometry& geometry)
      : Rings(world, Space::device, geometry), memory_(device_window(world, geometry.bytes(world.ranks()))) {
    world::collective_try(world, [&] {
      abort_ = cuda::HostMapping(world.abort_word(), sizeof(AbortWord));
      std::vector<char*> all;
      for (int rank = 0; rank < world.ranks(); ++rank) all.push_back(memory_->at(rank));
      make_direct_endpoints(all);
      table_ = device_copy(endpoints_.data(), endpoints_.size() * sizeof(Endpoint));
    });
  }

  EndpointTable table() const override {
    return make_table(static_cast<const Endpoint*>(table_.get()), endpoints_);
  }

  AbortWord* device_abort_word() const override { return abort_.device(world().abort_word()); }

  int device() const override { return memory_->device(); }

  void reset() override {
    world::collective_try(world(), [&] { memory_->finish(); });
    world::collective_try(world(), [&] {
      memory_->clear(0, geometry_.state_at(world_size(), 0));
      const uint64_t packets = geometry_.packets_at(world_size(), 0, 0);
      memory_->clear(packets, geometry_.bytes(world_size()) - packets);
    });
    set_mended();
  }

 private:
  cuda::HostMapping abort_;
  std::unique_ptr<DeviceWindow> memory_;
  std::shared_ptr<const void> table_;
};

}  // namespace

std::unique_ptr<Transport> direct_in_device_memory(World& world, const Geometry& geometry) {
  return std::make_unique<DeviceDirect>(world, geometry);
}

}  // namespace chorale::transport
