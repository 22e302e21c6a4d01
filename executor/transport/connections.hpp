/// \file
/// Ranks of a world connect over TCP here. Every wait ends: after the world's timeout, or when the world
/// stops.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "chorale/world.hpp"

namespace chorale::transport {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept { *this = std::move(other); }
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

using Clock = std::chrono::steady_clock;

/// Returns the deadline of a wait that begins now; the end of time if the world has no timeout.
Clock::time_point deadline_of(const World& world);

/// Says how a wait ended: something has come, its time was over, or the world has stopped.
enum class Waited { ready, late, stopped };
Waited wait_on(World& world, std::span<pollfd> sockets, Clock::time_point until);

/// Holds what a rank needs to call another.
struct Invitation {
  uint16_t port = 0;    ///< of the loopback device
  uint64_t secret = 0;  ///< the first word from a caller; other programs of this host do not know it
};

/// Accepts the calls of the higher ranks.
class Listener {
 public:
  /// \throws RunError resources
  Listener();

  const Invitation& invitation() const { return invitation_; }

  /// Waits for all higher ranks. Hangs up on a caller that does not know the secret.
  /// \returns sockets by rank
  /// \throws RunError timed_out naming the missing ranks; that of a world that has stopped; resources
  std::vector<Socket> accept_peers(World& world);

 private:
  Socket socket_;
  Invitation invitation_;
};

/// Calls `peer`, as `world`'s rank.
/// \param peer  the rank that gave the invitation
/// \throws RunError timed_out naming the peer; that of a world that has stopped; resources
Socket call(World& world, int peer, const Invitation& invitation);

/// Collective: connects to each other rank. Returns the sockets by rank.
/// \throws RunError as Listener, on all ranks
std::vector<Socket> connect_ranks(World& world);

/// \throws RunError resources with what errno says
[[noreturn]] void throw_errno(const char* what);

}  // namespace chorale::transport
