/// \file
/// Open files, passed between the processes of a world.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chorale/world.hpp"
#include "process.hpp"
#include "shared_memory.hpp"

namespace chorale::world {

/// Unlike open_of_peer(), which opens anew what has a path, this passes any descriptor: CUDA's have none.
/// Within hosts, that is: nobody may want one of a rank of another.
class DescriptorPassing {
 public:
  enum class Way {
    take,  ///< pidfd_getfd(): Linux 5.6, and leave to trace the peer
    send   ///< over Unix sockets, where a container's or the kernel's rules forbid that
  };

  /// Collective. Tries which way all ranks may go, unless `way` says it.
  explicit DescriptorPassing(World& world, std::optional<Way> way = std::nullopt);

  Way way() const { return way_; }

  /// Collective: [rank] holds copies of what that rank passed as `mine`, if `wanted[rank]`. When it returns
  /// everybody has taken his, so that `mine` may be closed.
  /// \throws RunError on all ranks, of the lowest that failed
  std::vector<std::vector<Descriptor>> pass(World& world, std::span<const int> mine,
                                            const std::vector<bool>& wanted);

 private:
  /// What one rank has and wants.
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
