// This transport links ranks over a proxy. Kernels stage data to send in a copy of the peer's ring. A rank's
// links to itself need no proxy.

#include <fmt/format.h>

#include <cstring>

#include "chorale/window.hpp"
#include "executor/transport/kinds.hpp"
#include "executor/transport/rings.hpp"
#include "executor/world/collective_try.hpp"
#include "host_memory.hpp"
#include "orders.hpp"

namespace chorale::transport {
namespace {

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
