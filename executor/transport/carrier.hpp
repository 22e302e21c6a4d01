/// \file
/// A carrier moves data and words to peers for the proxy of a port transport.
#pragma once

#include <cstdint>
#include <memory>

#include "chorale/device/link.hpp"
#include "chorale/world.hpp"
#include "geometry.hpp"

namespace chorale::transport {

/// Holds one word for the peer's end of a link, and the data that must arrive before it.
struct Parcel {
  int peer = -1;
  uint32_t channel = 0;
  bool free = false;  ///< true: the word is slot_free; false: data_ready
  const char* data = nullptr;
  uint64_t offset = 0, bytes = 0;  ///< the place in the ring; the bytes do not wrap around its end
  uint64_t value = 0, note = 0;    ///< a note of 0 means none
};

class Carrier {
 public:
  virtual ~Carrier() = default;

  /// Returns this rank's memory, which holds the ends of its links and its rings in the layout of Geometry.
  virtual char* memory() = 0;

  /// Sends a parcel, and returns when `parcel.data` may be overwritten. Parcels to one peer arrive in order.
  /// In a stopped world they may be lost.
  virtual void carry(const Parcel& parcel) = 0;

  /// Ensures that parcels that have not arrived yet never arrive; collective.
  virtual void forget() = 0;
};

// Both functions are collective.
std::unique_ptr<Carrier> carry_by_memory(World& world, const Geometry& geometry);
std::unique_ptr<Carrier> carry_by_tcp(World& world, const Geometry& geometry);

/// Writes a parcel's word into the owner's end of the link. Call it when the parcel's data has arrived.
inline void post(LinkState& link, bool free, uint64_t value, uint64_t note) {
  if (free) return store_release(&link.slot_free.value, value);
  if (note != 0) store_relaxed(&link.data_ready.note, note);
  store_release(&link.data_ready.value, value);
}

}  // namespace chorale::transport
