/// \file
/// Memory that a switch reads and writes at several ranks at once: CUDA's multicast objects. Made only where
/// the configuration asks for multicast by name. It has not run on hardware.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "allocation.hpp"
#include "chorale/world.hpp"
#include "peer_memory.hpp"

namespace chorale::cuda {

/// Members of switch channels: each a list of ranks in order.
using SwitchGroups = std::vector<std::vector<uint32_t>>;

/// Why multicast among these ranks cannot be had on `device`, with what to do; empty: what can be asked for
/// without trying it is there.
std::string refuse_multicast_devices(const std::vector<RankDevice>& devices, const SwitchGroups& groups,
                                     int device);

/// As many bytes on every rank, each mapped at all peers, and bound to a multicast object for each group that
/// the rank is a member of.
///
/// Unbound when it goes, without asking the peers: by then no launch of any rank that uses it may be under
/// way.
class MulticastMemory {
 public:
  /// Collective, with the same arguments on every rank. Zeroed when it returns.
  /// \throws RunError of the lowest rank for which it did not work, on all ranks
  MulticastMemory(World& world, Imports& imports, uint64_t bytes, const SwitchGroups& groups);
  MulticastMemory(const MulticastMemory&) = delete;
  MulticastMemory& operator=(const MulticastMemory&) = delete;
  ~MulticastMemory();

  uint64_t bytes() const { return bytes_; }  ///< at least as many as were asked for
  char* at(int rank) const { return mapped_.at(rank); }
  /// The address of the memory of all members, for `multimem` instructions alone; null if this rank is none.
  char* of_group(size_t group) const;

 private:
  class Object;

  void make_objects(World& world, const Imports& imports, const SwitchGroups& groups);

  uint64_t bytes_ = 0;
  Allocation memory_;
  PeerMemory mapped_;
  std::vector<std::unique_ptr<Object>> objects_;  ///< by group; go first
};

}  // namespace chorale::cuda
