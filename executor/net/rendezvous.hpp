/// \file
/// How ranks that know one TCP address find each other.
#pragma once

#include <chrono>
#include <string>

#include "address.hpp"
#include "chorale/error.hpp"
#include "hello.hpp"

namespace chorale::net {

/// Collective: a fresh name, the same on all ranks, under which they can meet in the memory that they share.
///
/// Rank 0 listens on `address`; the others connect, again and again until it does, and say who they are.
/// Rank 0 compares, and tells all of them the name, or what is wrong.
/// \param timeout  0: none
/// \throws RunError timed_out naming the ranks that did not come; mismatch if two processes have one rank,
///         if numbers of ranks or versions differ, the ranks cannot share memory, or something else speaks
///         on the port; peer_lost if one dies meanwhile; other if the address cannot be resolved or used
std::string rendezvous(const Address& address, const Hello& mine, std::chrono::nanoseconds timeout);

}  // namespace chorale::net
