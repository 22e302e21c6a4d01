/// \file
/// The Courier serves port channels between hosts: it sends what one rank's proxy has for GPUs of other
/// hosts, and carries out what they send.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../net/world_link.hpp"
#include "../remote/far_place.hpp"
#include "chorale/device/signal.hpp"
#include "chorale/world.hpp"
#include "pinned_pieces.hpp"
#include "stream.hpp"

namespace chorale::cuda {

/// Data leaves the GPU by a copy into memory of the host and travels as messages of a piece each. The peer
/// copies it to its GPU in the order in which it was sent, and sets the signal after it. The peer then
/// answers that it is done; only then is it done here. None of this waits for a launch: as within a host, a
/// plan ensures that what it writes may be written.
///
/// Call all functions under the proxy's lock, except connect(), which takes it. The proxy's thread calls
/// work().
class Courier {
 public:
  /// The memory of one binding on this rank that peers of other hosts may write to.
  struct Reached {
    struct Buffer {
      char* base = nullptr;
      uint64_t bytes = 0;
    };
    std::array<Buffer, 4> buffers;  ///< by BufferKind; the last is for packets
    Signal* signals = nullptr;      ///< in the host's memory
    uint32_t n_signals = 0;
  };

  /// A request of a block.
  struct Order {
    uint32_t client = 0, channel = 0;  ///< the client's channel that asks, and is told when it is done
    int peer = 0;
    uint64_t binding = 0;
    const char* from = nullptr;
    remote::FarPlace to;
    uint64_t bytes = 0;
    uint32_t signal = no_signal;  ///< the peer's signal, to be set after the data
    uint64_t posted = 0;          ///< the value to set it to
  };
  static constexpr uint32_t no_signal = ~uint32_t{0};

  using Done = std::function<void(uint32_t client, uint32_t channel)>;

  Courier(World& world, int device, std::mutex& lock, Done done);

  /// Sends what is still to be sent, for a second at most; then says goodbye.
  ~Courier();

  /// Makes the link to the other hosts, if there has been none since the last reset. Collective.
  /// \throws RunError on all ranks if one of them cannot have the link
  void connect();

  /// Registers a binding that all ranks make. It is the n-th since connect() on each of them. All ranks call
  /// this before any of them sends.
  /// \param peers  the ranks of other hosts that it connects with this rank
  /// \return n
  uint64_t enrol(const Reached& reached, const std::vector<int>& peers);
  void strike(uint64_t binding);

  void send(const Order& order);

  /// Lets everything go on. Returns false if there is nothing to do at present.
  bool work();

  /// Forgets everything after a stop. Nothing is done any more until the next connect().
  void drop();

 private:
  struct Header;

  struct Sent {
    uint64_t turn, bytes;
    std::optional<std::pair<uint32_t, uint32_t>> done;  ///< a client's channel; none: more of its order comes
  };
  struct Outbox {
    std::deque<Order> orders;
    uint64_t begun = 0;  ///< bytes of the first order that have been begun
    uint64_t last_turn = 0;
    std::deque<Sent> sent;  ///< messages that the peer has not done yet
  };
  /// A piece on its way out of the GPU.
  struct Leaving {
    OwnedEvent copied;
    int peer;
    std::array<std::byte, 64> header;
    net::Payload payload;
  };
  struct Held;
  struct Inbox {
    uint64_t begun = 0, done = 0, told = 0;  ///< turns
    std::map<uint64_t, Held> waiting;        ///< by turn
  };
  /// A piece on its way into the GPU.
  struct Arriving {
    std::optional<OwnedEvent> copied;  ///< none: there was no data
    uint64_t binding = 0;
    Signal* signal = nullptr;  ///< to be set after the copy; null: none
    uint64_t posted = 0;       ///< the value to set it to
    std::shared_ptr<std::byte[]> piece;
    int from = -1;
    uint64_t turn = 0;
  };

  void come(int from, std::span<const std::byte> bytes, net::Payload payload);
  void take_done(int peer, uint64_t turn);
  bool begin_orders();
  bool begin(int peer, Outbox& outbox);
  bool send_what_left();
  bool deliver();
  bool carry_out(int from, const Header& header, const net::Payload& payload);
  bool tell_what_arrived();
  bool busy() const;
  OwnedEvent recorded(cudaStream_t stream);
  bool copied(OwnedEvent& event, const char* what);

  World& world_;
  const int device_;
  std::mutex& lock_;
  const Done done_;
  bool dropped_ = false;

  PinnedPieces out_pieces_, in_pieces_;
  const OwnedStream out_{"a stream for what goes to other hosts"},
      in_{"a stream for what comes from other hosts"};
  std::vector<OwnedEvent> events_;  ///< unused events; one per piece, made at once as PinnedPieces are

  uint64_t enrolled_ = 0;
  std::map<uint64_t, Reached> reached_;  ///< by the number of the binding
  std::map<int, Outbox> outboxes_;       ///< by peer
  std::map<int, Inbox> inboxes_;
  std::deque<Leaving> leaving_;
  std::deque<Arriving> arriving_;
  uint64_t bytes_on_the_way_ = 0;
  std::unique_ptr<net::WorldLink> link_;  // destroyed before the members that its events use
};

}  // namespace chorale::cuda
