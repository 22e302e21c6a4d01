// This transport links ranks over a proxy. Kernels stage data to send in a copy of the peer's ring. A rank's
// links to itself need no proxy.

#include <fmt/format.h>

#include <cstring>

#include "../world/collective_try.hpp"
#include "carrier.hpp"
#include "host_memory.hpp"
#include "in_device_memory.hpp"
#include "orders.hpp"
#include "rings.hpp"

namespace chorale {
namespace {

using namespace transport;

const char* name(ProxyKind proxy) {
  switch (proxy) {
    case ProxyKind::shared_memory:
      return "shared_memory";
    case ProxyKind::tcp:
      return "tcp";
    case ProxyKind::copy_engine:
      return "copy_engine";
  }
  return "?";
}

class PortTransport final : public Rings {
 public:
  PortTransport(World& world, const Geometry& geometry, std::unique_ptr<Carrier> carrier)
      : Rings(world, Space::host, geometry), carrier_(std::move(carrier)) {
    world::collective_try(world, [&] { connect(); });
  }

  void reset() override {
    world().barrier();  // no kernel runs after it, so no proxy does
    carrier_->forget();
    std::memset(carrier_->memory(), 0, geometry_.state_at(world_size(), 0));
    world().barrier();
    set_mended();
  }

  std::vector<Proxied*> proxies() const override { return {proxy_.get()}; }

 private:
  void connect() {
    stages_ = host_memory(geometry_.stage_bytes(world_size()), "data that a proxy sends");
    proxy_ = std::make_unique<OrderProxy>(world().scheduler(),
                                          [this](const PortOrder& order) { carry_out(order); });
    make_port_endpoints(carrier_->memory(), carrier_->memory(), stages_.get(), proxy_->queue());
  }

  void carry_out(const PortOrder& order) {
    Parcel parcel;
    parcel.peer = order.peer;
    parcel.channel = order.channel;
    parcel.value = order.end;
    if (order.kind == PortOrder::Kind::free) {
      parcel.free = true;
    } else {
      parcel.offset = order.begin % geometry_.window();
      parcel.bytes = order.end - order.begin;
      parcel.data = at(order.peer, order.channel).send_dst + parcel.offset;
      parcel.note = order.note;
    }
    carrier_->carry(parcel);
    if (parcel.free) return;
    uint64_t& left = at(order.peer, order.channel).local->left.value;
    store_release(&left, left + 1);
  }

  std::unique_ptr<Carrier> carrier_;
  HostMemory stages_;
  std::unique_ptr<OrderProxy> proxy_;
};

}  // namespace

std::unique_ptr<Transport> port_rendezvous(World& world, const RendezvousOptions& options, ProxyKind proxy) {
  const Geometry geometry =
      agree_on_geometry(world, options, fmt::format("port_rendezvous by {}", name(proxy)));
  if (options.ring_at == RingAt::sender) {
    throw UsageError(
        "port_rendezvous: ring_at is sender, but a proxy moves data to rings at the receiver: leave ring_at "
        "out");
  }
  if ((proxy == ProxyKind::copy_engine) != (options.space == Space::device)) {
    throw UsageError(fmt::format(
        "port_rendezvous by {} in {} memory: copy engines are for device memory, and other proxies "
        "are for host memory",
        name(proxy), options.space == Space::device ? "device" : "host"));
  }
  if (options.packet_bytes != 0) {
    throw UsageError(
        fmt::format("packet_bytes is {}: links over a proxy have no packets", options.packet_bytes));
  }
  if (options.space == Space::device) return port_in_device_memory(world, geometry);
  if (proxy == ProxyKind::tcp && world.scheduler().seeded()) {
    throw UsageError(
        "port_rendezvous by tcp does not work in a world with a seed, because connections have no fixed "
        "order");
  }
  return std::make_unique<PortTransport>(
      world, geometry,
      proxy == ProxyKind::tcp ? carry_by_tcp(world, geometry) : carry_by_memory(world, geometry));
}

}  // namespace chorale
