// This carrier sends over a connection to each peer. A thread writes arriving data to its place.

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <thread>

#include "../fibers/scheduler.hpp"
#include "../system/fork.hpp"
#include "../system/thread.hpp"
#include "../world/collective_try.hpp"
#include "../world/group.hpp"
#include "carrier.hpp"
#include "connections.hpp"
#include "host_memory.hpp"

namespace chorale::transport {
namespace {

/// Represents the header of a frame, in this machine's byte order, because all ranks are on one host.
struct Header {
  uint64_t generation;  ///< how often the transport was reset
  int32_t rank;         ///< the sender's rank
  uint32_t channel;
  uint64_t free, offset, bytes, value, note;
};

/// Bytes that no rank needs are sent and read in parts of this length.
constexpr uint64_t nobodys_bytes = 64 << 10;

/// Runs a thread that writes arriving data to its place.
class Receiver {
 public:
  /// \param memory  this rank's memory, in the layout of `geometry`
  Receiver(World& world, const Geometry& geometry, char* memory, const std::vector<Socket>& sockets)
      : world_(world), geometry_(geometry), memory_(memory), quit_(::eventfd(0, EFD_CLOEXEC)) {
    if (!quit_) throw_errno("cannot make an eventfd for a proxy");
    for (const Socket& socket : sockets) peers_.push_back({socket.get(), {}, 0});
    dropped_.resize(nobodys_bytes);
    thread_ = world::start_thread("a proxy", [this] { receive(); });
  }

  ~Receiver() {
    if (origin_.forked()) {
      world::keep_for_ever(std::make_shared<std::thread>(std::move(thread_)));
      return;
    }
    const uint64_t one = 1;
    if (::write(quit_.get(), &one, sizeof one) != sizeof one) std::terminate();  // it cannot fail
    thread_.join();
  }

  uint64_t generation() const { return generation_; }

  /// Begins a new generation. Frames of an older generation are dropped when they arrive.
  void begin_generation() {
    const std::lock_guard lock(posting_);
    generation_.fetch_add(1);
  }

 private:
  /// Holds a connection and the state of its current frame.
  struct Peer {
    int socket;
    Header header;
    uint64_t come;  ///< the bytes of the frame that have arrived
  };

  void receive() {
    std::vector<pollfd> polled;
    for (const Peer& peer : peers_) polled.push_back({peer.socket, POLLIN, 0});
    polled.push_back({quit_.get(), POLLIN, 0});
    for (;;) {
      if (::poll(polled.data(), polled.size(), -1) < 0) continue;  // a signal interrupted it
      if (polled.back().revents != 0) return;
      for (size_t peer = 0; peer < peers_.size(); ++peer) {
        // A peer that has closed has left or died. The world reports which.
        if (polled[peer].revents != 0 && !read(peers_[peer])) polled[peer].fd = -1;
      }
    }
  }

  /// Reads the available bytes. Returns false when the connection has ended.
  bool read(Peer& peer) {
    char* to;
    uint64_t wanted;
    if (peer.come < sizeof(Header)) {
      to = reinterpret_cast<char*>(&peer.header) + peer.come;
      wanted = sizeof(Header) - peer.come;
    } else {
      const uint64_t done = peer.come - sizeof(Header);
      wanted = peer.header.bytes - done;
      to = memory_ + geometry_.ring_at(world_.ranks(), peer.header.rank, peer.header.channel) +
           peer.header.offset + done;
      if (stale(peer)) {
        wanted = std::min(wanted, nobodys_bytes);
        to = dropped_.data();
      }
    }
    const ssize_t got = ::recv(peer.socket, to, wanted, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0) return false;
    peer.come += uint64_t(got);
    if (peer.come < sizeof(Header) || peer.come < sizeof(Header) + peer.header.bytes) return true;
    // A frame must not be posted after its generation has ended, because the links have been cleared then.
    if (const std::lock_guard lock(posting_); !stale(peer)) {
      auto& link =
          *reinterpret_cast<LinkState*>(memory_ + geometry_.state_at(peer.header.rank, peer.header.channel));
      post(link, peer.header.free != 0, peer.header.value, peer.header.note);
    }
    peer.come = 0;
    if (world_.local()) world_.scheduler().busy(-1);
    return true;
  }

  bool stale(const Peer& peer) const { return peer.header.generation != generation_; }

  World& world_;
  const Geometry geometry_;
  char* const memory_;
  std::vector<Peer> peers_;  ///< by rank
  const Socket quit_;
  std::atomic<uint64_t> generation_{0};
  std::mutex posting_;
  std::vector<char> dropped_;
  const world::Origin origin_;
  std::thread thread_;
};

class ByTcp final : public Carrier {
 public:
  ByTcp(World& world, const Geometry& geometry) : world_(world) {
    world::collective_try(world, [&] {
      memory_ = host_memory(geometry.bytes(world.ranks()), "rings");
      frames_.resize(size_t(world.ranks()));
      nothing_.resize(nobodys_bytes);
    });
    sockets_ = connect_ranks(world);
    world::collective_try(world, [&] { receiver_.emplace(world, geometry, memory_.get(), sockets_); });
  }

  char* memory() override { return memory_.get(); }

  void carry(const Parcel& parcel) override {
    Frame& frame = frames_[size_t(parcel.peer)];
    if (frame.left != 0 && !send(parcel.peer, nullptr)) return;
    frame.header = {receiver_->generation(), world_.rank(), parcel.channel, parcel.free,
                    parcel.offset,           parcel.bytes,  parcel.value,   parcel.note};
    frame.left = frame.bytes();
    send(parcel.peer, parcel.data);
  }

  void forget() override { receiver_->begin_generation(); }

 private:
  /// Represents the last frame to a peer. A stop may leave it half sent. The peer still expects the rest, so
  /// the rest is sent before the next frame. By then the transport was reset, so the content of the rest does
  /// not matter.
  struct Frame {
    Header header{};
    uint64_t left = 0;  ///< the bytes that are not sent yet

    uint64_t bytes() const { return sizeof(Header) + header.bytes; }
  };

  /// Sends the rest of the frame to `peer`.
  /// \param data  the data of the frame; null: any bytes
  /// \returns false if the frame could not be sent, because the world has stopped or the peer is gone
  bool send(int peer, const char* data) {
    Frame& frame = frames_[size_t(peer)];
    // While a frame is in flight, no thread holds it, so count it as busy for the detection of deadlocks. If
    // all ranks are in this process, the receiver ends that when the frame has arrived. Other worlds do not
    // detect deadlocks.
    if (world_.local()) world_.scheduler().busy(1);
    Clock::time_point until = deadline_of(world_);
    while (frame.left != 0) {
      const uint64_t done = frame.bytes() - frame.left;
      const char* from = reinterpret_cast<const char*>(&frame.header) + done;
      uint64_t bytes = sizeof(Header) - done;
      if (done >= sizeof(Header)) {
        from = data ? data + (done - sizeof(Header)) : nothing_.data();
        bytes = data ? frame.left : std::min(frame.left, nobodys_bytes);
      }
      const ssize_t sent = ::send(sockets_[size_t(peer)].get(), from, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) {
        frame.left -= uint64_t(sent);
        until = deadline_of(world_);
      } else if (errno == EAGAIN) {
        if (!wait(peer, until)) break;
      } else if (errno != EINTR) {
        // A peer that has closed its end no longer needs the frame, for example a credit after its last
        // launch. If the peer has died, the world reports it.
        frame.left = 0;
        if (world_.local()) world_.scheduler().busy(-1);
        return false;
      }
    }
    if (frame.left == 0) return true;
    if (frame.left == frame.bytes()) frame.left = 0;  // no byte of the frame was sent
    if (world_.local()) world_.scheduler().busy(-1);
    return false;
  }

  /// Waits until the connection can take more. Returns false after the timeout, which stops the world, or if
  /// the world has stopped.
  bool wait(int peer, Clock::time_point until) {
    pollfd polled{sockets_[size_t(peer)].get(), POLLOUT, 0};
    const Waited waited = wait_on(world_, {&polled, 1}, until);
    if (waited == Waited::late) {
      world_.group().raise(
          Stop::timed_out, world_.rank(),
          fmt::format("the proxy of rank {} waited {} for rank {} to read what it sends; {}", world_.rank(),
                      world::seconds_text(world_.timeout()), peer, world::more_time));
    }
    return waited == Waited::ready;
  }

  World& world_;
  HostMemory memory_;
  std::vector<Socket> sockets_;  ///< by rank
  std::vector<Frame> frames_;    ///< by rank
  std::vector<char> nothing_;
  std::optional<Receiver> receiver_;
};

}  // namespace

std::unique_ptr<Carrier> carry_by_tcp(World& world, const Geometry& geometry) {
  return std::make_unique<ByTcp>(world, geometry);
}

}  // namespace chorale::transport
