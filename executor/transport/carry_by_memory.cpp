// This carrier copies into the memory of peers.

#include <cstring>

#include "carrier.hpp"
#include "chorale/window.hpp"

namespace chorale::transport {
namespace {

class ByMemory final : public Carrier {
 public:
  ByMemory(World& world, const Geometry& geometry)
      : self_(world.rank()),
        ranks_(world.ranks()),
        geometry_(geometry),
        window_(Window::create(world, geometry.bytes(world.ranks()))) {}

  char* memory() override { return at(self_); }

  void carry(const Parcel& parcel) override {
    char* const there = at(parcel.peer);
    if (parcel.bytes != 0) {
      std::memcpy(there + geometry_.ring_at(ranks_, self_, parcel.channel) + parcel.offset, parcel.data,
                  parcel.bytes);
    }
    post(*reinterpret_cast<LinkState*>(there + geometry_.state_at(self_, parcel.channel)), parcel.free,
         parcel.value, parcel.note);
  }

  void forget() override {}  // carry() has ended on all ranks, so nothing is in flight

 private:
  char* at(int rank) const { return reinterpret_cast<char*>(window_.at(rank)); }

  const int self_, ranks_;
  const Geometry geometry_;
  Window window_;
};

}  // namespace

std::unique_ptr<Carrier> carry_by_memory(World& world, const Geometry& geometry) {
  return std::make_unique<ByMemory>(world, geometry);
}

}  // namespace chorale::transport
