// Links over memory that all ranks map: on the CPU a Window.

#include <fmt/format.h>

#include <cstring>

#include "chorale/window.hpp"
#include "in_device_memory.hpp"
#include "rings.hpp"

namespace chorale {
namespace {

using transport::Geometry;

class DirectTransport final : public transport::Rings {
 public:
  DirectTransport(World& world, const Geometry& geometry)
      : Rings(world, Space::host, geometry), window_(Window::create(world, geometry.bytes(world.ranks()))) {
    make_endpoints(LinkKind::direct);
    const int ranks = world.ranks(), self = world.rank();
    for (int peer = 0; peer < ranks; ++peer) {
      char* const mine = memory(self);
      char* const theirs = memory(peer);
      for (uint32_t channel = 0; channel < geometry.channels; ++channel) {
        Endpoint& e = at(peer, channel);
        e.local = reinterpret_cast<LinkState*>(mine + geometry.state_at(peer, channel));
        e.remote = reinterpret_cast<LinkState*>(theirs + geometry.state_at(self, channel));
        e.recv_src = mine + geometry.ring_at(ranks, peer, channel);
        e.send_dst = theirs + geometry.ring_at(ranks, self, channel);
        e.packet_src = mine + geometry.packets_at(ranks, peer, channel);
        e.packet_dst = theirs + geometry.packets_at(ranks, self, channel);
      }
    }
  }

  void reset() override {
    world().barrier();
    // Rings may hold anything, packets may not: one that is there would be taken for a new one.
    std::memset(memory(rank()), 0, geometry_.state_at(world_size(), 0));
    const uint64_t packets = geometry_.packets_at(world_size(), 0, 0);
    std::memset(memory(rank()) + packets, 0, geometry_.bytes(world_size()) - packets);
    world().barrier();
    set_mended();
  }

 private:
  char* memory(int rank) const { return reinterpret_cast<char*>(window_.at(rank)); }

  Window window_;
};

}  // namespace

std::unique_ptr<Transport> direct_rendezvous(World& world, const RendezvousOptions& options) {
  const Geometry geometry = transport::agree_on_geometry(world, options, "direct_rendezvous");
  if (options.space == Space::device) return transport::direct_in_device_memory(world, geometry);
  return std::make_unique<DirectTransport>(world, geometry);
}

}  // namespace chorale
