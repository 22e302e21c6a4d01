/// \file
/// The ranks that are left of a world agree here on the next one: World::survivors().
#pragma once

#include <cstdint>
#include <memory>

namespace chorale::world {

class Group;

/// Says how far an attempt to make the next world has come. It is one word of the control memory that changes
/// only by compare-and-swap, so all ranks see one course of events, even if some die or sleep in between:
///
///   open    ->  offered  ->  made
///     |         |     ^
///     +--> failed     another rank's offer, once the one that offers has died
///
/// A failed attempt is followed by the next; one that is made is the last.
struct Attempt {
  enum class Phase : uint8_t {
    open,     ///< the living ranks come
    offered,  ///< all have come; `rank` has made the memory of the next world, and the others open it
    made,     ///< all of its ranks that live have opened it
    failed    ///< `rank` has given it up, and its seat says why
  };

  uint32_t number = 0;
  Phase phase = Phase::open;
  uint32_t rank = 0;

  uint64_t word() const { return uint64_t(number) << 32 | uint64_t(phase) << 24 | rank; }
  static Attempt of(uint64_t word) {
    return {uint32_t(word >> 32), Phase(word >> 24 & 0xff), uint32_t(word & 0xffffff)};
  }
  bool operator==(const Attempt&) const = default;
};

/// Names a rank of a group.
struct Place {
  std::shared_ptr<Group> group;
  int rank = -1;
};

/// See World::survivors().
Place next_of(Group& old, int rank);

}  // namespace chorale::world
