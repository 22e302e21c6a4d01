// This transport links GPUs over a proxy. Kernels stage data in a copy of the peer's ring. A host thread
// starts a copy on the copy engine, and writes the peer's word when the copy has ended. The words are in host
// memory that all ranks map.

#include "executor/cuda/device/device.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

#include "chorale/device/port.hpp"
#include "chorale/window.hpp"
#include "executor/cuda/device/device_memory.hpp"
#include "executor/cuda/device/error.hpp"
#include "executor/cuda/device/host_words.hpp"
#include "executor/cuda/proxy/orders.hpp"
#include "executor/cuda/proxy/proxy_copies.hpp"
#include "executor/transport/in_device_memory.hpp"
#include "executor/transport/kinds.hpp"
#include "executor/transport/rings.hpp"
#include "executor/world/collective_try.hpp"

namespace chorale::transport {
namespace {

/// Each peer has this many streams, so that the next copy runs while one ends.
constexpr size_t copy_streams = 2;

class DevicePort final : public Rings {
 public:
  DevicePort(World& world, const Geometry& geometry)
      : Rings(world, Space::device, geometry),
        memory_(device_window(world, geometry.bytes(world.ranks()))),
        words_(Window::create(world, geometry.state_at(world.ranks(), 0))) {
    world::collective_try(world, [&] { connect(); });
  }

  ~DevicePort() override {
    orders_->stop();
    try {
      const cuda::CurrentDevice on(device());
      // Carry out the last orders, because a peer may still wait for a last credit.
      const std::lock_guard lock(orders_->lock());
      if (load_acquire(&world().abort_word()->stop) == 0) orders_->take_all();
      for (cuda::ProxyCopies& copies : copies_) copies.finish();
    } catch (const RunError&) {
      // CUDA has failed. The application has got that error already, or will get it.
    }
  }

  EndpointTable table() const override {
    return make_table(static_cast<const Endpoint*>(table_.get()), endpoints_);
  }

  AbortWord* device_abort_word() const override { return abort_.device(world().abort_word()); }
  int device() const override { return memory_->device(); }

  void reset() override {
    const cuda::CurrentDevice on(device());
    world::collective_try(world(), [&] {
      memory_->finish();
      const std::lock_guard lock(orders_->lock());
      // Orders that were taken may still be copying, also to peers.
      for (cuda::ProxyCopies& copies : copies_) copies.drop();
      orders_->drop();
      std::fill(given_.begin(), given_.end(), 0);
    });
    world::collective_try(world(), [&] {
      memory_->clear(0, geometry_.state_at(world_size(), 0));
      std::memset(words_.local(), 0, words_.bytes(rank()));
    });
    set_mended();
  }

 private:
  void connect() {
    abort_ = cuda::HostMapping(world().abort_word(), sizeof(AbortWord));
    told_ = cuda::HostMapping(words_.local(), words_.bytes(rank()));
    stages_ = cuda::DeviceMemory(geometry_.stage_bytes(world_size()), "copies of the peers' rings");
    for (int peer = 0; peer < world_size(); ++peer)
      copies_.emplace_back("a copy of a transport's proxy", peer == rank() ? 0 : copy_streams);
    orders_ = std::make_unique<cuda::Orders<PortOrder>>(
        device(), [this](const PortOrder& order) { carry_out(order); },
        [this](const RunError& failed) {
          world().abort(std::string("the proxy of a transport: ") + failed.what());
        },
        [this] {
          bool any = false;
          for (cuda::ProxyCopies& copies : copies_) any |= copies.work();
          return any;
        });
    given_.resize(size_t(world_size()) * geometry_.channels);
    PortQueue queue;
    queue.orders = orders_->ring();
    queue.slots = orders_->slots;
    queue.head = orders_->head();
    queue.tail = orders_->tail();
    queue_ = device_copy(&queue, sizeof queue);
    make_port_endpoints(memory_->at(rank()), reinterpret_cast<char*>(told_.device(words_.local())),
                        stages_.data(), static_cast<PortQueue*>(const_cast<void*>(queue_.get())));
    table_ = device_copy(endpoints_.data(), endpoints_.size() * sizeof(Endpoint));
    orders_->start();
  }

  void carry_out(const PortOrder& order) {
    LinkState& theirs = state(order.peer, rank(), order.channel);
    // A free slot need not wait for a copy.
    if (order.kind == PortOrder::Kind::free) return post(theirs, true, order.end, 0);
    const uint64_t offset = order.begin % geometry_.window();
    cuda::ProxyCopies& copies = copies_[size_t(order.peer)];
    copies.copy(memory_->at(order.peer) + geometry_.ring_at(world_size(), rank(), order.channel) + offset,
                endpoint(order.peer, order.channel).send_dst + offset, order.end - order.begin,
                order.begin / geometry_.slot);
    cuda::ProxyCopies::Words words;
    if (order.note != 0) words.add(&theirs.data_ready.note, order.note);
    words.add(&theirs.data_ready.value, order.end);
    words.add(&state(rank(), order.peer, order.channel).left.value,
              ++given_[size_t(order.peer) * geometry_.channels + order.channel]);
    copies.then(words);
  }

  /// Returns the part of a link's end that proxies write.
  LinkState& state(int owner, int peer, uint32_t channel) const {
    return *reinterpret_cast<LinkState*>(words_.at(owner) + geometry_.state_at(peer, channel));
  }

  cuda::HostMapping abort_;
  std::unique_ptr<DeviceWindow> memory_;
  Window words_;  ///< by rank: its LinkStates, of which the cursors are not used
  cuda::HostMapping told_;
  cuda::DeviceMemory stages_;
  std::deque<cuda::ProxyCopies> copies_;  ///< by peer
  std::vector<uint64_t> given_;           ///< the number of orders passed to `copies_`, by peer, then by
                                          ///< channel
  std::shared_ptr<const void> queue_, table_;
  std::unique_ptr<cuda::Orders<PortOrder>> orders_;  // the last member, because its thread uses the others
};

}  // namespace

std::unique_ptr<Transport> port_in_device_memory(World& world, const Geometry& geometry) {
  return std::make_unique<DevicePort>(world, geometry);
}

}  // namespace chorale::transport
