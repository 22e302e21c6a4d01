// A proxy that sends over a connection to each peer; a thread puts in place what arrives.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

#include "../cpu/scheduler.hpp"
#include "../world/together.hpp"
#include "carrier.hpp"

namespace chorale::transport {
namespace {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept { *this = std::move(other); }
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

[[noreturn]] void fail(const char* what) {
  throw RunError(RunError::Reason::resources,
                 fmt::format("{}: {}", what, std::generic_category().message(errno)));
}

/// On the wire, in this machine's byte order: all ranks are on one host.
struct Header {
  uint64_t generation;  ///< of the transport: how often it was reset
  int32_t rank;         ///< who sends
  uint32_t channel;
  uint64_t free, offset, bytes, value, note;
};

bool send_all(int fd, const void* data, uint64_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes != 0) {
    const ssize_t sent = ::send(fd, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= uint64_t(sent);
  }
  return true;
}

class ByTcp final : public Carrier {
 public:
  ByTcp(World& world, const Geometry& geometry)
      : world_(world),
        geometry_(geometry),
        memory_(new (std::align_val_t{128}) char[geometry.bytes(world.ranks())]()),
        peers_(size_t(world.ranks())) {
    connect();
    thread_ = std::thread([this] { receive(); });
  }

  ~ByTcp() override {
    const uint64_t one = 1;
    if (::write(quit_.get(), &one, sizeof one) != sizeof one) std::terminate();  // an eventfd takes it
    thread_.join();
  }

  char* memory() override { return memory_.get(); }

  void carry(const Parcel& parcel) override {
    const Header header{generation_,   world_.rank(), parcel.channel, parcel.free,
                        parcel.offset, parcel.bytes,  parcel.value,   parcel.note};
    const int fd = peers_[size_t(parcel.peer)].socket.get();
    // Under way it is nobody's but the connection's. Where the receiver is in this process it says that it
    // has come; elsewhere nobody looks for deadlocks.
    if (world_.local()) world_.scheduler().busy(1);
    // Who has closed its end has no use for it any more, as for a credit behind its last launch; or it died,
    // which its world says.
    if (send_all(fd, &header, sizeof header) && send_all(fd, parcel.data, parcel.bytes)) return;
    if (world_.local()) world_.scheduler().busy(-1);
  }

  void forget() override {
    // What is of an older generation is dropped when it comes.
    generation_.fetch_add(1);
  }

 private:
  struct FreeAligned {
    void operator()(char* memory) const { ::operator delete[](memory, std::align_val_t{128}); }
  };

  /// A connection, and how much of a frame has come.
  struct Peer {
    Socket socket;
    Header header{};
    uint64_t come = 0;  ///< bytes of the frame
  };

  void connect() {
    const int self = world_.rank(), ranks = world_.ranks();
    Socket listener;
    uint16_t port = 0;
    world::together(world_, [&] {
      quit_ = Socket(::eventfd(0, EFD_CLOEXEC));
      listener = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (quit_.get() < 0 || listener.get() < 0) fail("no socket for a proxy");
      sockaddr_in here = loopback(0);
      socklen_t length = sizeof here;
      if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&here), sizeof here) != 0 ||
          ::listen(listener.get(), ranks) != 0 ||
          ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&here), &length) != 0) {
        fail("a proxy cannot listen");
      }
      port = ntohs(here.sin_port);
    });
    const auto ports = world_.allgather(world::bytes_of(port));
    // The connection is there once the listener's queue has it, so this ends before anybody accepts.
    world::together(world_, [&] {
      for (int peer = 0; peer < self; ++peer) {
        Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (socket.get() < 0) fail("no socket for a proxy");
        const sockaddr_in there = loopback(world::read_as<uint16_t>(ports[size_t(peer)]));
        if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0) {
          fail("a proxy cannot connect to a peer's");
        }
        const int32_t rank = self;
        if (!send_all(socket.get(), &rank, sizeof rank)) fail("a proxy cannot reach a peer's");
        peers_[size_t(peer)].socket = std::move(socket);
      }
    });
    world::together(world_, [&] {
      for (int others = self + 1; others < ranks; ++others) {
        Socket socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        int32_t rank = -1;
        if (socket.get() < 0 || ::recv(socket.get(), &rank, sizeof rank, MSG_WAITALL) != sizeof rank) {
          fail("a proxy cannot accept a peer's");
        }
        if (rank <= self || rank >= ranks || peers_[size_t(rank)].socket.get() >= 0) {
          throw RunError(RunError::Reason::mismatch, "a proxy was called by somebody who is no peer");
        }
        peers_[size_t(rank)].socket = std::move(socket);
      }
      for (const Peer& peer : peers_) {
        const int on = 1;
        if (peer.socket.get() >= 0) ::setsockopt(peer.socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      }
    });
  }

  static sockaddr_in loopback(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
  }

  void receive() {
    std::vector<pollfd> polled;
    for (const Peer& peer : peers_) polled.push_back({peer.socket.get(), POLLIN, 0});
    polled.push_back({quit_.get(), POLLIN, 0});
    for (;;) {
      if (::poll(polled.data(), polled.size(), -1) < 0) continue;  // interrupted
      if (polled.back().revents != 0) return;
      for (size_t peer = 0; peer < peers_.size(); ++peer) {
        // A peer that has closed has left, or died: its world says which.
        if (polled[peer].revents != 0 && !read(peers_[peer])) polled[peer].fd = -1;
      }
    }
  }

  /// Reads what is there; false when the connection has ended.
  bool read(Peer& peer) {
    char* to;
    uint64_t wanted;
    if (peer.come < sizeof(Header)) {
      to = reinterpret_cast<char*>(&peer.header) + peer.come;
      wanted = sizeof(Header) - peer.come;
    } else {
      const uint64_t done = peer.come - sizeof(Header);
      wanted = peer.header.bytes - done;
      to = memory() + geometry_.ring_at(world_.ranks(), peer.header.rank, peer.header.channel) +
           peer.header.offset + done;
      if (stale(peer)) {
        dropped_.resize(wanted);
        to = dropped_.data();
      }
    }
    const ssize_t got = ::recv(peer.socket.get(), to, wanted, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0) return false;
    peer.come += uint64_t(got);
    if (peer.come < sizeof(Header) || peer.come < sizeof(Header) + peer.header.bytes) return true;
    if (!stale(peer)) {
      auto& link =
          *reinterpret_cast<LinkState*>(memory() + geometry_.state_at(peer.header.rank, peer.header.channel));
      post(link, peer.header.free != 0, peer.header.value, peer.header.note);
    }
    peer.come = 0;
    if (world_.local()) world_.scheduler().busy(-1);
    return true;
  }

  bool stale(const Peer& peer) const { return peer.header.generation != generation_; }

  World& world_;
  const Geometry geometry_;
  std::unique_ptr<char[], FreeAligned> memory_;
  std::vector<Peer> peers_;  ///< by rank
  Socket quit_;
  std::atomic<uint64_t> generation_{0};
  std::vector<char> dropped_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Carrier> carry_by_tcp(World& world, const Geometry& geometry) {
  return std::make_unique<ByTcp>(world, geometry);
}

}  // namespace chorale::transport
