/// \file
/// Ranks that know one TCP address find each other here.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "../system/shared_memory.hpp"
#include "address.hpp"
#include "chorale/error.hpp"
#include "hello.hpp"
#include "membership.hpp"
#include "secret.hpp"

namespace chorale::net {

struct Rendezvous {
  Membership membership;  ///< the same on all ranks, with a fresh name
  /// Connections by host, between rank 0 and the lowest rank of each other host. Both ends may speak. Other
  /// ranks have none.
  std::vector<world::Descriptor> links;
};

/// Collective: finds out which rank is on which host.
///
/// Rank 0 listens on `address`; the others connect, again and again until it does, and say who they are.
/// Rank 0 compares, and tells all of them the membership, or what is wrong. Before that, both ends of a
/// connection prove that they know the secret. A caller that does not can neither end the session nor take a
/// seat.
/// \param timeout  0: none
/// \throws RunError timed_out naming the ranks that did not come; mismatch if two processes have one rank,
///         if numbers of ranks, versions or secrets differ, ranks of one machine share no memory, or
///         something else listens on the port; peer_lost if one dies meanwhile; resources if the port is in
///         use or no more files may be open; other if the address cannot be resolved or used
Rendezvous rendezvous(const Address& address, const Hello& mine, std::chrono::nanoseconds timeout,
                      const Secret& secret = {});

}  // namespace chorale::net
