/// \file
/// A switch reads and writes this memory at several ranks at once, by CUDA's multicast objects. It is made
/// only when the configuration asks for multicast by name. It has not run on hardware.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chorale/world.hpp"
#include "executor/cuda/memory/allocation.hpp"
#include "executor/cuda/memory/peer_memory.hpp"

namespace chorale::cuda {

/// Lists the members of switch channels. Each group is a list of ranks in order.
using SwitchGroups = std::vector<std::vector<uint32_t>>;

/// Returns why multicast among these ranks is impossible on `device`, and what to do. Empty: all checks that
/// need no trial have passed.
std::string refuse_multicast_devices(const std::vector<RankDevice>& devices, const SwitchGroups& groups,
                                     int device);

/// Owns memory of equal size on every rank. It is mapped at all peers, and bound to a multicast object for
/// each group of which this rank is a member.
///
/// The destructor unbinds it without asking the peers. By then no launch of any rank that uses it may be
/// running.
class MulticastMemory {
 public:
  /// Allocates the memory. Collective, with the same arguments on every rank. The memory is zero on return.
  /// \throws RunError of the lowest rank that failed, on all ranks
  MulticastMemory(World& world, Imports& imports, uint64_t bytes, const SwitchGroups& groups);
  MulticastMemory(const MulticastMemory&) = delete;
  MulticastMemory& operator=(const MulticastMemory&) = delete;
  ~MulticastMemory();

  uint64_t bytes() const { return bytes_; }  ///< at least the requested bytes
  char* at(int rank) const { return mapped_.at(rank); }
  /// Returns the address of all members' memory, only for `multimem` instructions. Null if this rank is not a
  /// member.
  char* of_group(size_t group) const;

 private:
  class Object;

  void make_objects(World& world, const Imports& imports, const SwitchGroups& groups);

  uint64_t bytes_ = 0;
  Allocation memory_;
  PeerMemory mapped_;
  std::vector<std::unique_ptr<Object>> objects_;  ///< by group; destroyed first
};

}  // namespace chorale::cuda
