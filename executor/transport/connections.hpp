/// \file
/// connect_ranks() connects the ranks of a world over TCP. Every wait ends at the world's timeout, or when
/// the world stops.
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

/// Returns the deadline of a wait that begins now. Returns the clock's maximum if the world has no timeout.
Clock::time_point deadline_of(const World& world);

/// Tells how a wait ended: a socket is ready, the deadline has passed, or the world has stopped.
enum class Waited { ready, late, stopped };
Waited wait_on(World& world, std::span<pollfd> sockets, Clock::time_point until);

/// Holds the data that a rank needs to call another rank.
struct Invitation {
  uint16_t port = 0;    ///< a port of the loopback device
  uint64_t secret = 0;  ///< the first word that a caller sends; other programs on this host do not know it
};

/// Accepts connections from the higher ranks.
class Listener {
 public:
  /// \throws RunError resources
  Listener();

  const Invitation& invitation() const { return invitation_; }

  /// Waits until all higher ranks have connected. It closes the connection of a caller that does not know the
  /// secret.
  /// \returns the sockets by rank
  /// \throws RunError timed_out, which names the missing ranks; the error of a stopped world; resources
  std::vector<Socket> accept_peers(World& world);

 private:
  Socket socket_;
  Invitation invitation_;
};

/// Connects this rank of `world` to `peer`.
/// \param peer  the rank that made the invitation
/// \throws RunError timed_out, which names the peer; the error of a stopped world; resources
Socket call(World& world, int peer, const Invitation& invitation);

/// Connects to each other rank, and returns the sockets by rank; collective.
/// \throws RunError, on all ranks, as Listener
std::vector<Socket> connect_ranks(World& world);

/// \throws RunError resources with the text of errno
[[noreturn]] void throw_errno(const char* what);

}  // namespace chorale::transport
