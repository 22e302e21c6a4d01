/// \file
/// A rendezvous connects ranks that know a common TCP address.
#pragma once

#include <chrono>
#include <vector>

#include "address.hpp"
#include "chorale/error.hpp"
#include "executor/system/shared_memory.hpp"
#include "hello.hpp"
#include "membership.hpp"
#include "secret.hpp"

namespace chorale {
class Invitation;
}

namespace chorale::bootstrap {

struct Rendezvous {
  Membership membership;  ///< the same on all ranks, with a new name
  /// Connections by host, between rank 0 and the lowest rank of each other host. Both ends may send. Other
  /// ranks have none.
  std::vector<system::Descriptor> links;
};

/// Finds out which rank is on which host; collective.
///
/// Rank 0 listens on `address`. The other ranks retry until they can connect. Then both ends of a connection
/// prove that they know the secret, and the rank sends its hello. Rank 0 compares the hellos, and sends all
/// ranks either the membership or an error. A caller that does not know the secret can neither end the
/// rendezvous nor take a seat.
/// \param timeout  the limit of the wait; 0: no limit
/// \throws RunError timed_out, which names the ranks that did not join; mismatch if two processes have the
///         same rank, if numbers of ranks, versions or secrets differ, if ranks of one machine share no
///         memory, or if another program listens on the port; peer_lost if a rank dies during the call;
///         resources if the port is in use or this process cannot open more files; other if the address
///         cannot be resolved or used
Rendezvous rendezvous(const Address& address, const Hello& mine, std::chrono::nanoseconds timeout,
                      const Secret& secret = {});

/// Does the same for the ranks of an invitation, which call the process that made it; collective. All ranks
/// are on one host, so there are no links. They are either all threads of one process, or all processes.
/// \throws RunError as World::join(const Invitation&, ...)
Rendezvous rendezvous(const Invitation& invitation, const Hello& mine, std::chrono::nanoseconds timeout);

}  // namespace chorale::bootstrap
