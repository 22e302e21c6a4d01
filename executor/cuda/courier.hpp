/// \file
/// Port channels between hosts: what one rank's proxy sends to, and does for, GPUs of other hosts.
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
#include "chorale/device/signal.hpp"
#include "chorale/world.hpp"
#include "far_place.hpp"
#include "pinned_pieces.hpp"
#include "stream.hpp"

namespace chorale::cuda {

/// Data leave the GPU by a copy into memory of the host, go as messages of a piece each, and are copied to
/// the peer's GPU there, in the order in which they were sent, with the signal behind them. The peer then
/// says that it is done, and only then is it done here. None of this waits for a launch: as within a host, a
/// plan sees to it that what it writes may be written.
///
/// Under the proxy's lock, which connect() takes itself; `work` is called by the proxy's thread.
class Courier {
 public:
  /// What peers of other hosts may write to on this rank, of one binding.
  struct Reached {
    struct Buffer {
      char* base = nullptr;
      uint64_t bytes = 0;
    };
    std::array<Buffer, 4> buffers;  ///< by BufferKind; behind them packets
    Signal* signals = nullptr;      ///< in the host's memory
    uint32_t n_signals = 0;
  };

  /// What a block has asked for.
  struct Order {
    uint32_t client = 0, channel = 0;  ///< whose; told when it is done
    int peer = 0;
    uint64_t binding = 0;
    const char* from = nullptr;
    FarPlace to;
    uint64_t bytes = 0;
    uint32_t signal = no_signal;  ///< the peer's, to be set behind the data
    uint64_t posted = 0;          ///< to this
  };
  static constexpr uint32_t no_signal = ~uint32_t{0};

  using Done = std::function<void(uint32_t client, uint32_t channel)>;

  Courier(World& world, int device, std::mutex& lock, Done done);

  /// Sends what is to be sent, for a second at most; then says goodbye.
  ~Courier();

  /// Collective: the link to the other hosts, if there is none since the last reset.
  /// \throws RunError on all ranks if one of them cannot have it
  void connect();

  /// A binding that all ranks make, the n-th since connect() on each of them, before any of them sends.
  /// \return n
  /// \param peers  on other hosts, that it connects with this rank
  uint64_t enrol(const Reached& reached, const std::vector<int>& peers);
  void strike(uint64_t binding);

  void send(const Order& order);

  /// Lets everything go on. False: there is nothing to do at present.
  bool work();

  /// After a stop: forgets everything. Nothing is done any more until the next connect().
  void drop();

 private:
  struct Header;

  struct Sent {
    uint64_t turn, bytes;
    std::optional<std::pair<uint32_t, uint32_t>> done;  ///< a client's channel; none: more of it comes
  };
  struct Outbox {
    std::deque<Order> orders;
    uint64_t begun = 0;  ///< bytes of the first of them
    uint64_t last_turn = 0;
    std::deque<Sent> sent;  ///< whose being done is waited for
  };
  /// On its way out of the GPU.
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
  /// On its way into the GPU.
  struct Arriving {
    std::optional<OwnedEvent> copied;  ///< none: there were no data
    uint64_t binding = 0;
    Signal* signal = nullptr;  ///< to be set then, if any
    uint64_t posted = 0;       ///< to this
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
  std::vector<OwnedEvent> events_;  ///< that nobody uses: as many as pieces, for the same reason

  uint64_t enrolled_ = 0;
  std::map<uint64_t, Reached> reached_;  ///< of the bindings that there are
  std::map<int, Outbox> outboxes_;       ///< by peer
  std::map<int, Inbox> inboxes_;
  std::deque<Leaving> leaving_;
  std::deque<Arriving> arriving_;
  uint64_t bytes_on_the_way_ = 0;
  std::unique_ptr<net::WorldLink> link_;  // goes before what its events use
};

}  // namespace chorale::cuda
