/// \file
/// A carrier moves data and words to the peers, for a port transport's proxy.
#pragma once

#include <cstdint>
#include <memory>

#include "chorale/device/link.hpp"
#include "chorale/world.hpp"
#include "geometry.hpp"

namespace chorale::transport {

/// Holds one word for a link's end at the peer, and the data that comes before it.
struct Parcel {
  int peer = -1;
  uint32_t channel = 0;
  bool free = false;  ///< the word is slot_free, else data_ready
  const char* data = nullptr;
  uint64_t offset = 0, bytes = 0;  ///< into the ring; the bytes do not wrap round its end
  uint64_t value = 0, note = 0;    ///< note: 0: none
};

class Carrier {
 public:
  virtual ~Carrier() = default;

  /// Returns this rank's memory: the ends of its links and its rings, as Geometry lays them out.
  virtual char* memory() = 0;

  /// Sends a parcel, and returns once `parcel.data` may be overwritten. Parcels to one peer arrive in order.
  /// In a stopped world they may get lost.
  virtual void carry(const Parcel& parcel) = 0;

  /// Collective: ensures that a parcel that has not arrived yet never will.
  virtual void forget() = 0;
};

// Both of these are collective.
std::unique_ptr<Carrier> carry_by_memory(World& world, const Geometry& geometry);
std::unique_ptr<Carrier> carry_by_tcp(World& world, const Geometry& geometry);

/// Writes a parcel's word into the link's end, at its owner, once the parcel's data is there.
inline void post(LinkState& link, bool free, uint64_t value, uint64_t note) {
  if (free) return store_release(&link.slot_free.value, value);
  if (note != 0) store_relaxed(&link.data_ready.note, note);
  store_release(&link.data_ready.value, value);
}

}  // namespace chorale::transport
