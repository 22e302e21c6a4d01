/// \file
/// What a port transport's proxy moves data and words to the peers with.
#pragma once

#include <cstdint>
#include <memory>

#include "chorale/device/link.hpp"
#include "chorale/world.hpp"
#include "geometry.hpp"

namespace chorale::transport {

/// One word of a link's end at the peer, and the data that comes before it.
struct Parcel {
  int peer = -1;
  uint32_t channel = 0;
  bool free = false;  ///< slot_free, else data_ready
  const char* data = nullptr;
  uint64_t offset = 0, bytes = 0;  ///< into the ring, which they do not wrap round
  uint64_t value = 0, note = 0;    ///< note: 0: none
};

class Carrier {
 public:
  virtual ~Carrier() = default;

  /// This rank's: the ends of its links and its rings, as Geometry has them.
  virtual char* memory() = 0;

  /// Returns once `parcel.data` may be overwritten. Parcels to one peer arrive in order. In a stopped world
  /// they may get lost.
  virtual void carry(const Parcel& parcel) = 0;

  /// Collective: what has not arrived yet never will.
  virtual void forget() = 0;
};

/// Collective.
std::unique_ptr<Carrier> carry_by_memory(World& world, const Geometry& geometry);
std::unique_ptr<Carrier> carry_by_tcp(World& world, const Geometry& geometry);

/// At the owner of the link's end: what a parcel comes to once its data is there.
inline void post(LinkState& link, bool free, uint64_t value, uint64_t note) {
  if (free) return store_release(&link.slot_free.value, value);
  if (note != 0) store_relaxed(&link.data_ready.note, note);
  store_release(&link.data_ready.value, value);
}

}  // namespace chorale::transport
