// This transport links ranks over a proxy. Kernels stage data to send in a copy of the peer's ring. A rank's
// links to itself need no proxy.

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "chorale/device/port.hpp"
#include "chorale/error.hpp"
#include "chorale/window.hpp"
#include "executor/fibers/queue_thread.hpp"
#include "executor/fibers/scheduler.hpp"
#include "executor/transport/kinds.hpp"
#include "executor/transport/proxied.hpp"
#include "executor/transport/rings.hpp"
#include "executor/world/collective_try.hpp"

namespace chorale::transport {
namespace {

inline constexpr std::align_val_t line{128};

struct FreeLines {
  void operator()(char* memory) const { ::operator delete[](memory, line); }
};
using HostMemory = std::unique_ptr<char[], FreeLines>;

/// Returns `bytes` bytes of zeroed memory, aligned to a cache line.
/// \param what  what the memory is for, as the error names it
/// \throws RunError resources
inline HostMemory host_memory(uint64_t bytes, const char* what) {
  HostMemory memory(new (line, std::nothrow) char[bytes]());
  if (memory) return memory;
  throw RunError(
      RunError::Reason::resources,
      fmt::format("cannot allocate {} bytes of memory for {}; give the transport fewer per_peer_bytes", bytes,
                  what));
}

/// Takes a rank's orders one after the other and passes them to `carry_out`. It sleeps between launches.
class OrderProxy final : public Proxied {
 public:
  static constexpr uint64_t slots = 1024;

  /// \param carry_out  must return when the data has left the sender's copy of the ring. Only one thread
  ///                   calls it
  OrderProxy(fibers::Scheduler& scheduler, std::function<void(const PortOrder&)> carry_out);

  PortQueue* queue() { return &queue_; }

  void begin() override {
    if (thread_) thread_->begin();
  }

  void end(bool stopped) override {
    if (thread_) return thread_->end(stopped);
    if (stopped) drop();
  }

  void run_fiber(HostBlock& host, const std::atomic<int>& threads_left) override {
    const auto wake = [this, &threads_left] {
      return ready() || threads_left.load(std::memory_order_acquire) == 0;
    };
    while (host.stopped() == Stop::none) {
      if (ready()) {
        host.step();
        take();
      } else if (threads_left.load(std::memory_order_acquire) == 0) {
        return;
      } else {
        host.park([](const void* of) { return (*static_cast<const decltype(wake)*>(of))(); }, &wake);
      }
    }
  }

 private:
  bool ready() const { return load_acquire(&orders_[tail_ % slots].turn) == tail_ + 1; }

  /// Carries out one order. Returns false if there is none.
  bool take() {
    if (!ready()) return false;
    const PortOrder order = orders_[tail_ % slots];
    store_release(&tail_, tail_ + 1);
    carry_out_(order);
    unfinished_.fetch_sub(1, std::memory_order_relaxed);
    scheduler_.busy(-1);
    return true;
  }

  void drop() {
    scheduler_.busy(-unfinished_.exchange(0));
    for (PortOrder& order : orders_) order.turn = 0;
    head_ = tail_ = 0;
  }

  fibers::Scheduler& scheduler_;
  const std::function<void(const PortOrder&)> carry_out_;
  std::vector<PortOrder> orders_;
  alignas(128) uint64_t head_ = 0;
  alignas(128) uint64_t tail_ = 0;
  std::atomic<int> unfinished_{0};  ///< the number of orders that are announced but not carried out
  PortQueue queue_;
  std::optional<fibers::QueueThread>
      thread_;  ///< none with a seed; the last member, because it uses the others
};

OrderProxy::OrderProxy(fibers::Scheduler& scheduler, std::function<void(const PortOrder&)> carry_out)
    : scheduler_(scheduler), carry_out_(std::move(carry_out)), orders_(slots) {
  queue_.orders = orders_.data();
  queue_.slots = slots;
  queue_.head = &head_;
  queue_.tail = &tail_;
  queue_.announced = this;
  queue_.announce = [](void* of) {
    OrderProxy& self = *static_cast<OrderProxy*>(of);
    self.unfinished_.fetch_add(1, std::memory_order_relaxed);
    self.scheduler_.busy(1);
  };
  if (!scheduler_.seeded())
    thread_.emplace(
        "a proxy", 500, [this] { return take(); }, [this] { drop(); });
}

class PortTransport final : public Rings {
 public:
  PortTransport(World& world, const Geometry& geometry)
      : Rings(world, Space::host, geometry), window_(Window::create(world, geometry.bytes(world.ranks()))) {
    world::collective_try(world, [&] { connect(); });
  }

  void reset() override {
    world().barrier();  // no kernel runs after it, so no proxy does
    std::memset(memory_of(rank()), 0, geometry_.state_at(world_size(), 0));
    world().barrier();
    set_mended();
  }

  std::vector<Proxied*> proxies() const override { return {proxy_.get()}; }

 private:
  void connect() {
    stages_ = host_memory(geometry_.stage_bytes(world_size()), "data that a proxy sends");
    proxy_ = std::make_unique<OrderProxy>(world().scheduler(),
                                          [this](const PortOrder& order) { carry_out(order); });
    make_port_endpoints(memory_of(rank()), memory_of(rank()), stages_.get(), proxy_->queue());
  }

  /// Returns a rank's memory: the ends of its links and its rings, as Geometry lays them out.
  char* memory_of(int rank) const { return reinterpret_cast<char*>(window_.at(rank)); }

  void carry_out(const PortOrder& order) {
    char* const there = memory_of(order.peer);
    LinkState& link = *reinterpret_cast<LinkState*>(there + geometry_.state_at(rank(), order.channel));
    if (order.kind == PortOrder::Kind::free) return post(link, true, order.end, 0);
    const uint64_t offset = order.begin % geometry_.window();
    std::memcpy(there + geometry_.ring_at(world_size(), rank(), order.channel) + offset,
                at(order.peer, order.channel).send_dst + offset, order.end - order.begin);
    post(link, false, order.end, order.note);
    uint64_t& left = at(order.peer, order.channel).local->left.value;
    store_release(&left, left + 1);
  }

  Window window_;
  HostMemory stages_;
  std::unique_ptr<OrderProxy> proxy_;
};

}  // namespace

std::string port_refuses(const RendezvousOptions& options) {
  if (options.ring_at == RingAt::sender)
    return "ring_at is sender, but a proxy moves data to rings at the receiver: leave ring_at out";
  if (options.packet_bytes != 0)
    return fmt::format("packet_bytes is {}: links over a proxy have no packets", options.packet_bytes);
  return "";
}

std::unique_ptr<Transport> port_in_host_memory(World& world, const Geometry& geometry) {
  return std::make_unique<PortTransport>(world, geometry);
}

}  // namespace chorale::transport
