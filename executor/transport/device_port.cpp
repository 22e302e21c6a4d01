// Links between GPUs over a proxy: kernels stage in a copy of the peer's ring, and a thread of the host has
// the copy engine move it and then writes the peer's word. Words lie in memory of the host that all ranks
// map.

#include <cstring>
#include <optional>

#include "../cuda/copy_engine.hpp"
#include "../cuda/device.hpp"
#include "../cuda/device_memory.hpp"
#include "../cuda/error.hpp"
#include "../cuda/host_words.hpp"
#include "../cuda/orders.hpp"
#include "../world/together.hpp"
#include "carrier.hpp"
#include "chorale/device/port.hpp"
#include "chorale/window.hpp"
#include "in_device_memory.hpp"
#include "rings.hpp"

namespace chorale::transport {
namespace {

constexpr size_t copy_streams = 2;  ///< while one copy ends, the next goes on

class DevicePort final : public Rings {
 public:
  DevicePort(World& world, const Geometry& geometry)
      : Rings(world, Space::device, geometry),
        memory_(device_window(world, geometry.bytes(world.ranks()))),
        words_(Window::create(world, geometry.state_at(world.ranks(), 0))) {
    world::together(world, [&] { connect(); });
  }

  ~DevicePort() override {
    orders_->stop();
    try {
      const cuda::CurrentDevice on(device());
      // A peer may wait for the last credit, which no launch does.
      const std::lock_guard lock(orders_->lock());
      if (load_acquire(&world().abort_word()->stop) == 0) orders_->take_all();
      engine_->finish();
    } catch (const RunError&) {
      // CUDA has failed, as the application has been told or will be.
    }
  }

  EndpointTable table() const override {
    return make_table(static_cast<const Endpoint*>(table_.get()), endpoints_);
  }

  AbortWord* device_abort_word() const override { return abort_.device(world().abort_word()); }
  int device() const override { return memory_->device(); }

  void reset() override {
    const cuda::CurrentDevice on(device());
    world::together(world(), [&] {
      memory_->finish();
      const std::lock_guard lock(orders_->lock());
      // What had been taken is under way, to the peers as well.
      engine_->drop();
      done_orders_ = orders_->drop();
      store_release(done_.host(), done_orders_);
    });
    world::together(world(), [&] {
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
    done_ = cuda::HostArray<uint64_t>(1);
    engine_.emplace("a copy of a transport's proxy", copy_streams);
    orders_ = std::make_unique<cuda::Orders<PortOrder>>(
        device(), [this](const PortOrder& order) { carry_out(order); },
        [this](const RunError& failed) {
          world().abort(std::string("the proxy of a transport: ") + failed.what());
        },
        [this] { return engine_->work(); });
    PortQueue queue;
    queue.orders = orders_->ring();
    queue.slots = orders_->slots;
    queue.head = orders_->head();
    queue.tail = orders_->tail();
    queue.done = done_.device();
    queue_ = device_copy(&queue, sizeof queue);
    make_port_endpoints(memory_->at(rank()), reinterpret_cast<char*>(told_.device(words_.local())),
                        stages_.data(), static_cast<PortQueue*>(const_cast<void*>(queue_.get())));
    table_ = device_copy(endpoints_.data(), endpoints_.size() * sizeof(Endpoint));
    orders_->start();
  }

  void carry_out(const PortOrder& order) {
    LinkState& link =
        *reinterpret_cast<LinkState*>(words_.at(order.peer) + geometry_.state_at(rank(), order.channel));
    cuda::CopyEngine::Words words;
    if (order.kind == PortOrder::Kind::free) {
      post(link, true, order.end, 0);  // waits for no copy
    } else {
      copy(order);
      if (order.note != 0) words.add(&link.data_ready.note, order.note);
      words.add(&link.data_ready.value, order.end);
    }
    words.add(done_.host(), ++done_orders_);
    engine_->then(words);
  }

  void copy(const PortOrder& order) {
    const uint64_t offset = order.begin % geometry_.window();
    engine_->copy(memory_->at(order.peer) + geometry_.ring_at(world_size(), rank(), order.channel) + offset,
                  endpoint(order.peer, order.channel).send_dst + offset, order.end - order.begin);
  }

  cuda::HostMapping abort_;
  std::unique_ptr<DeviceWindow> memory_;
  Window words_;  ///< by rank: its LinkStates, of which proxies write data_ready and slot_free
  cuda::HostMapping told_;
  cuda::DeviceMemory stages_;
  cuda::HostArray<uint64_t> done_;
  uint64_t done_orders_ = 0;
  std::optional<cuda::CopyEngine> engine_;
  std::shared_ptr<const void> queue_, table_;
  std::unique_ptr<cuda::Orders<PortOrder>> orders_;  // last: its thread uses the others
};

}  // namespace

std::unique_ptr<Transport> port_in_device_memory(World& world, const Geometry& geometry) {
  return std::make_unique<DevicePort>(world, geometry);
}

}  // namespace chorale::transport
