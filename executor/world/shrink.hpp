/// \file
/// A shrink makes a new world of the remaining ranks of a world, for World::survivors().
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace chorale::world {

class Group;

/// Holds the progress of an attempt to make the next world. It is one word of the control memory. The word
/// changes only by compare-and-swap, so all ranks see the same sequence of states, even if some ranks die or
/// sleep in between:
///
///   open    ->  offered  ->  made
///     |         |     ^
///     +--> failed     another rank's offer, once the one that offers has died
///
/// The next attempt follows one that is made or has failed. An attempt belongs to the ranks that leave out
/// the same living ranks as `rank` does. Other ranks in survivors() take part in the attempts after it.
struct Attempt {
  enum class Phase : uint8_t {
    open,     ///< the attempt waits until all living ranks of a list have come
    offered,  ///< all living ranks have come; `rank` has made the memory of the next world, and the others
              ///< open it
    made,     ///< all living ranks of the next world have opened its memory
    failed    ///< `rank` has given up the attempt, and its seat holds the reason
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

/// Identifies a rank of a group.
struct Place {
  std::shared_ptr<Group> group;
  int rank = -1;
};

/// Makes the next world, as World::survivors() describes.
/// \param without  living ranks that the next world leaves out
Place next_of(Group& old, int rank, std::span<const int> without);

}  // namespace chorale::world
