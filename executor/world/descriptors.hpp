/// \file
/// DescriptorPassing passes open files between the processes of a world.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chorale/world.hpp"
#include "executor/system/shared_memory.hpp"
#include "process.hpp"

namespace chorale::world {

/// Passes any descriptor, including those of CUDA, which have no path. (open_of_peer() opens a file again by
/// its path.) It does not work between hosts.
class DescriptorPassing {
 public:
  enum class Method {
    take,  ///< by pidfd_getfd(), which needs Linux 5.6 and permission to trace the peer
    send   ///< over Unix sockets, when the rules of a container or of the kernel forbid `take`
  };

  /// Finds the method that works for all ranks, unless `method` gives it; collective.
  explicit DescriptorPassing(World& world, std::optional<Method> method = std::nullopt);

  Method method() const { return method_; }

  /// Passes descriptors; collective. If `wanted[rank]`, element [rank] of the result holds copies of the
  /// descriptors that this rank passed as `mine`. When it returns, all ranks have their copies, so you may
  /// close `mine`.
  /// \throws RunError on all ranks: the error of the lowest rank that failed
  std::vector<std::vector<system::Descriptor>> pass(World& world, std::span<const int> mine,
                                                    const std::vector<bool>& wanted);

 private:
  /// Lists the descriptors that a rank passes, and the ranks whose descriptors it wants.
  struct Offer {
    std::vector<int> descriptors;
    std::vector<bool> wanted;
  };

  std::vector<Offer> gather(World& world, std::span<const int> mine, const std::vector<bool>& wanted) const;
  void try_taking(World& world);
  void listen(World& world);
  void send_to(const World& world, int peer, std::span<const int> descriptors);
  void receive(World& world, const std::vector<Offer>& offers,
               std::vector<std::vector<system::Descriptor>>& all);

  Method method_ = Method::take;
  std::vector<Process> processes_;    // by rank
  std::vector<std::string> sockets_;  // the names of their sockets, by rank
  system::Descriptor listener_;
  uint64_t passes_ = 0;
};

}  // namespace chorale::world
