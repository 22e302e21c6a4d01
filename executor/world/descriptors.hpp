/// \file
/// Processes of a world pass open files to each other here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../system/shared_memory.hpp"
#include "chorale/world.hpp"
#include "process.hpp"

namespace chorale::world {

/// Passes any descriptor, also CUDA's, which have no path. open_of_peer() opens a file again by its path. No
/// rank may want a descriptor of a rank on another host.
class DescriptorPassing {
 public:
  enum class Way {
    take,  ///< by pidfd_getfd(), which needs Linux 5.6 and permission to trace the peer
    send   ///< over Unix sockets, when a container's or the kernel's rules forbid that
  };

  /// Collective: tries which way all ranks may go, unless `way` says it.
  explicit DescriptorPassing(World& world, std::optional<Way> way = std::nullopt);

  Way way() const { return way_; }

  /// Collective: passes descriptors. [rank] of the result holds copies of what that rank passed as `mine`, if
  /// `wanted[rank]`. When it returns, all ranks have taken theirs, so `mine` may be closed.
  /// \throws RunError on all ranks: the error of the lowest rank that failed
  std::vector<std::vector<Descriptor>> pass(World& world, std::span<const int> mine,
                                            const std::vector<bool>& wanted);

 private:
  /// Says what one rank has and wants.
  struct Offer {
    std::vector<int> descriptors;
    std::vector<bool> wanted;
  };

  std::vector<Offer> gather(World& world, std::span<const int> mine, const std::vector<bool>& wanted) const;
  void try_taking(World& world);
  void listen(World& world);
  void send_to(const World& world, int peer, std::span<const int> descriptors);
  void receive(World& world, const std::vector<Offer>& offers, std::vector<std::vector<Descriptor>>& all);

  Way way_ = Way::take;
  std::vector<Process> processes_;    // by rank
  std::vector<std::string> sockets_;  // by rank: their names
  Descriptor listener_;
  uint64_t passes_ = 0;
};

}  // namespace chorale::world
