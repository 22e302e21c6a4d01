#include "connections.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <system_error>

#include "../system/deadline.hpp"
#include "../world/collective_try.hpp"
#include "../world/group.hpp"

namespace chorale::transport {
namespace {

constexpr std::chrono::milliseconds between_looks{20};  ///< the time between checks of the world
/// The most callers that have not identified themselves. A peer identifies itself at once, so the oldest such
/// caller is dropped.
constexpr size_t most_silent = 64;

/// Represents the first message of a caller.
struct Hello {
  uint64_t secret;
  int64_t rank;
};

/// Represents a caller that has not identified itself yet.
struct Caller {
  Socket socket;
  Hello hello{};
  size_t come = 0;  ///< the bytes of the hello that have arrived

  /// Reads the available bytes. Returns false if the connection has ended.
  bool read() {
    const ssize_t got = ::recv(socket.get(), reinterpret_cast<char*>(&hello) + come, sizeof hello - come, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0) return false;
    come += size_t(got);
    return true;
  }
  bool heard() const { return come == sizeof hello; }
};

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

/// Makes a non-blocking socket, so that every wait ends.
Socket new_socket() {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw_errno("cannot make a socket for a proxy");
  return socket;
}

[[noreturn]] void throw_late(World& world, const std::string& missing) {
  world.check();
  throw RunError(RunError::Reason::timed_out,
                 fmt::format("timed out: a proxy of rank {} waited {} for a connection to {}; {}",
                             world.rank(), world::seconds_text(world.timeout()), missing, world::more_time));
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

void throw_errno(const char* what) {
  throw RunError(RunError::Reason::resources,
                 fmt::format("{}: {}", what, std::generic_category().message(errno)));
}

Clock::time_point deadline_of(const World& world) { return world::deadline_after(world.timeout()); }

Waited wait_on(World& world, std::span<pollfd> sockets, Clock::time_point until) {
  for (;;) {
    if (load_acquire(&world.abort_word()->stop) != 0) return Waited::stopped;
    if (::poll(sockets.data(), sockets.size(), int(between_looks.count())) > 0) return Waited::ready;
    if (Clock::now() >= until) return Waited::late;
    world.group().check_peers();
  }
}

Listener::Listener() : socket_(new_socket()) {
  sockaddr_in here = loopback(0);
  socklen_t length = sizeof here;
  if (::bind(socket_.get(), reinterpret_cast<sockaddr*>(&here), sizeof here) != 0 ||
      ::listen(socket_.get(), SOMAXCONN) != 0 ||
      ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&here), &length) != 0) {
    throw_errno("a proxy cannot listen");
  }
  invitation_.port = ntohs(here.sin_port);
  std::random_device random;
  invitation_.secret = uint64_t(random()) << 32 | random();
}

std::vector<Socket> Listener::accept_peers(World& world) {
  const int self = world.rank(), ranks = world.ranks();
  const Clock::time_point until = deadline_of(world);
  std::vector<Socket> peers(static_cast<size_t>(ranks));
  std::vector<Caller> callers;
  std::vector<pollfd> polled;
  for (int missing = ranks - 1 - self; missing > 0;) {
    polled.assign(1, {socket_.get(), POLLIN, 0});
    for (const Caller& caller : callers) polled.push_back({caller.socket.get(), POLLIN, 0});
    if (wait_on(world, polled, until) != Waited::ready) {
      std::vector<int> absent;
      for (int peer = self + 1; peer < ranks; ++peer) {
        if (!peers[size_t(peer)]) absent.push_back(peer);
      }
      throw_late(world, world::ranks_text(absent));
    }
    for (size_t at = callers.size(); at-- > 0;) {
      Caller& caller = callers[at];
      if (polled[at + 1].revents == 0) continue;
      const bool there = caller.read();
      if (there && !caller.heard()) continue;
      const Hello& hello = caller.hello;
      if (there && hello.secret == invitation_.secret && hello.rank > self && hello.rank < ranks &&
          !peers[size_t(hello.rank)]) {
        peers[size_t(hello.rank)] = std::move(caller.socket);
        --missing;
      }
      callers.erase(callers.begin() + ptrdiff_t(at));
    }
    if (polled[0].revents == 0) continue;
    Socket socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      if (callers.size() == most_silent) callers.erase(callers.begin());
      callers.emplace_back().socket = std::move(socket);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      throw_errno("a proxy cannot accept a peer's connection");
    }  // other errors come from the caller
  }
  return peers;
}

Socket call(World& world, int peer, const Invitation& invitation) {
  Socket socket = new_socket();
  const sockaddr_in there = loopback(invitation.port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) throw_errno("a proxy cannot connect to a peer's proxy");
    pollfd polled{socket.get(), POLLOUT, 0};
    if (wait_on(world, {&polled, 1}, deadline_of(world)) != Waited::ready) {
      throw_late(world, world::ranks_text({peer}));
    }
    socklen_t length = sizeof errno;
    int error = 0;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) {
      errno = error;
      throw_errno("a proxy cannot connect to a peer's proxy");
    }
  }
  const Hello hello{invitation.secret, world.rank()};
  // A new connection surely has room for these few bytes.
  if (::send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) != ssize_t(sizeof hello)) {
    throw_errno("a proxy cannot send to a peer's proxy");
  }
  return socket;
}

std::vector<Socket> connect_ranks(World& world) {
  const int self = world.rank();
  std::optional<Listener> listener;
  world::collective_try(world, [&] { listener.emplace(); });
  const auto invitations = world.allgather(world::bytes_of(listener->invitation()));
  std::vector<Socket> called;
  // connect() succeeds when the connection is in the listener's queue, so this ends before any rank accepts.
  world::collective_try(world, [&] {
    for (int peer = 0; peer < self; ++peer) {
      called.push_back(call(world, peer, world::read_as<Invitation>(invitations[size_t(peer)])));
    }
  });
  std::vector<Socket> peers;
  world::collective_try(world, [&] {
    peers = listener->accept_peers(world);
    std::move(called.begin(), called.end(), peers.begin());
    for (const Socket& peer : peers) {
      const int on = 1;
      if (peer) ::setsockopt(peer.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
  });
  return peers;
}

}  // namespace chorale::transport
