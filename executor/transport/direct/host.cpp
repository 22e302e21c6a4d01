// This transport links ranks over memory that all ranks map. On the CPU that is a Window.

#include <cstring>

#include "chorale/window.hpp"
#include "executor/transport/kinds.hpp"
#include "executor/transport/rings.hpp"

namespace chorale::transport {
namespace {

class DirectTransport final : public Rings {
 public:
  DirectTransport(World& world, const Geometry& geometry)
      : Rings(world, Space::host, geometry), window_(Window::create(world, geometry.bytes(world.ranks()))) {
    std::vector<char*> all;
    for (int rank = 0; rank < world.ranks(); ++rank) all.push_back(memory(rank));
    make_direct_endpoints(all);
  }

  void reset() override {
    world().barrier();
    // Rings may keep old data. Packets must be cleared, because an old packet could be taken for a new one.
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

std::string direct_refuses(const RendezvousOptions&) { return ""; }

std::unique_ptr<Transport> direct_in_host_memory(World& world, const Geometry& geometry) {
  return std::make_unique<DirectTransport>(world, geometry);
}

}  // namespace chorale::transport
