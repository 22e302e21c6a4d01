/// \file
/// The Endpoint serves port channels between hosts: it sends what one rank's proxy has for ranks of other
/// hosts, and carries out what they send.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../lowering/far_place.hpp"
#include "../ucx/world_link.hpp"
#include "chorale/device/signal.hpp"
#include "chorale/world.hpp"
#include "copies.hpp"
#include "message.hpp"

namespace chorale::remote {

/// A transfer goes in pieces, one message each. Data leave the rank's memory by a copy into memory of the
/// host. The receiver copies each piece into its memory, sets the signal after the last one, and answers that
/// this is done. Only then is the transfer done at the sender.
///
/// Messages of one rank to another for one binding are a stream: they are carried out in the order in which
/// they were sent. A message of one stream never waits for one of another stream.
///
/// A transfer may precede the receiver's launch, as within a host. It waits at the receiver, in memory of the
/// host, only as long as the receiver does not know where the buffer is: until its binding is registered and,
/// if its runs name input and output, until the run has begun.
///
/// A backend with a launching thread and a thread that serves its proxy makes these calls:
///
///     to bind a plan, all ranks   connect(), then register_binding()
///     before a launch             begin_run(), if runs name input and output
///     during it, the proxy        send() for each request to another host, and work() again and again
///     at the end of it            start_clock(); then the proxy calls settled() between its calls of work()
///                                 until that returns true, if the launch waits for what was sent
///     after it                    end_run(), if there was a begin_run()
///     between launches, the proxy work() now and then, or rest() instead; wake() ends a rest()
///     after a stop                drop(), when no block runs any more
///     after a reset               nothing: the next connect() makes the link anew
///     when a binding goes         unregister_binding()
///
/// All functions may be called by any thread. They take the endpoint's own lock and hold it while they call
/// back, so callbacks must not call the endpoint. A thread that holds another lock when it calls work() has
/// it in callbacks, too.
class Endpoint {
 public:
  struct Region {
    char* base = nullptr;
    uint64_t bytes = 0;
  };

  /// The memory of one binding on this rank that peers of other hosts may write to.
  struct Memory {
    std::array<Region, 4> buffers;  ///< by BufferKind; the last is for packets, lowering::packet_kind
    Signal* signals = nullptr;      ///< in the host's memory; peers set them, and nobody else does
    uint32_t n_signals = 0;
    bool runs_name_buffers = false;  ///< begin_run() says where input and output are, not `buffers`
  };

  /// A request of a block to its proxy: copy `bytes` bytes, then set the signal.
  struct Order {
    uint32_t client = 0, channel = 0;  ///< who asks; `done` gets both
    int peer = 0;
    uint64_t binding = 0;        ///< the result of register_binding()
    uint64_t run = 0;            ///< this rank's run; 0 where runs do not name buffers
    const char* from = nullptr;  ///< must stay as it is until the order is done
    FarPlace to;
    uint64_t bytes = 0;           ///< may be 0
    uint32_t signal = no_signal;  ///< the number of the peer's signal, to be set after the data
    uint64_t posted = 0;          ///< the value to set it to
  };
  static constexpr uint32_t no_signal = Message::no_signal;

  struct Events {
    /// An order is done: its data and its signal are at the peer. Called by work(), rest() and the
    /// destructor; once for each order, except for those of a binding that is unregistered.
    std::function<void(uint32_t client, uint32_t channel)> done;
    /// Something was carried out, here or at a peer, so launches make progress. Called by work() and rest().
    /// May be empty.
    std::function<void()> moved;
  };

  /// \param copies  access to the memory of this rank
  Endpoint(World& world, std::unique_ptr<Copies> copies, Events events);

  /// Sends what is still to be sent, for a second at most. Then says goodbye, so that no peer takes this end
  /// for a death, and waits for an answer for a second at most. No other thread may use the endpoint any
  /// more.
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// Makes the link to the other hosts, if there has been none since the last reset. Collective.
  /// \throws RunError on all ranks if one of them cannot have the link
  void connect();

  /// Registers a binding that all ranks make, in the same order on each. What peers have sent to it already
  /// is carried out now.
  /// \param peers  the ranks of other hosts that it connects with this rank
  /// \return its number, which is the same on all ranks and is never given again
  uint64_t register_binding(const Memory& memory, const std::vector<int>& peers);

  /// Undoes that: peers do not write there any more, and `done` is not called for what this rank has sent. A
  /// last signal that is still to be sent is sent.
  void unregister_binding(uint64_t binding);

  /// Says where input and output are in a run of a binding, until end_run() or the next begin_run(). Runs are
  /// numbered from 1, as at the peers; each round of a message is one. A message for a run that is yet to
  /// begin waits, and all of its stream behind it. A message that puts into input or output after the run has
  /// ended stops the world. Scratch, packets and signals may be written at any time.
  void begin_run(uint64_t binding, uint64_t run, const Region& input, const Region& output);
  void end_run(uint64_t binding);

  /// Takes an order. Any number may be given: at most 64 MiB of a rank are on the way at a time, and a
  /// further piece of each stream that has nothing on the way. The rest waits here.
  void send(const Order& order);

  /// Lets everything go on: sends, receives, carries out, calls back. Returns false if there is nothing to do
  /// at present. A failure stops the world, and nothing is thrown.
  bool work();

  /// Starts the clock of settled(), which starts anew whenever something is done. begin_run() stops it.
  void start_clock();

  /// Returns true if all that was sent has been done and all peers have been told what this rank has done, or
  /// if the world has stopped. Stops the world when the clock has run out, after the world's timeout; the
  /// error names the ranks that it waited for.
  bool settled();

  /// Returns true if nothing is on its way any more.
  bool idle();

  /// Works. If there was nothing to do, sleeps until something has come or wake() is called, but 100 ms at
  /// most. Where there is no link yet, sleeps until connect() has made one or wake() is called.
  void rest();
  void wake();

  /// Forgets everything after a stop. Nothing is done any more until the next connect().
  /// \throws RunError if a copy has failed
  void drop();

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;
  using Stream = std::pair<uint64_t, int>;  ///< a binding and the other rank

  struct Entry {
    Memory memory;
    uint64_t run = 0;  ///< the run that was begun last
    bool running = false;
  };
  struct Sent {
    uint64_t turn, bytes;
    std::optional<std::pair<uint32_t, uint32_t>> done;  ///< client and channel; none: more of its order comes
  };
  struct Outbox {
    std::deque<Order> orders;
    uint64_t begun = 0;  ///< bytes of the first order that have been begun
    uint64_t last_turn = 0;
    std::deque<Sent> sent;  ///< messages that the peer has not done yet
    bool gone = false;      ///< its binding is not registered any more
    bool empty() const { return orders.empty() && sent.empty(); }
  };
  struct Held {
    Message message;
    net::Payload payload;
  };
  struct Inbox {
    uint64_t begun = 0;                ///< turns
    std::map<uint64_t, Held> waiting;  ///< by turn
  };
  /// A piece that is being copied out of this rank's memory.
  struct Leaving {
    uint64_t copy;  ///< its number; copies are counted from 1
    int peer;
    Held held;
  };
  /// A message that is carried out as soon as its data are in this rank's memory.
  struct Arriving {
    uint64_t copy = 0;  ///< its number; 0: there were no data
    Stream stream;
    uint64_t turn = 0;
    Signal* signal = nullptr;  ///< null: none
    uint64_t posted = 0;
  };
  enum class Carried { yes, waits_for_room, waits_for_peers };

  void close();
  void forget();
  bool stopped() const;
  void look_again(uint64_t binding);

  bool begin_orders();
  bool begin(const Stream& stream, Outbox& outbox);
  bool send_what_left();
  void take_done(const Stream& stream, uint64_t turn);
  void leave(int peer);

  void come(int from, std::span<const std::byte> header, net::Payload payload);
  void owe(const Stream& stream, uint64_t turn);
  bool deliver();
  Carried carry_out(const Stream& stream, const Held& held);
  std::string fault_of(const Entry& entry, int from, const Held& held, bool over) const;
  bool finish_arrivals();

  bool work_locked();
  bool all_done() const;
  std::string waited_for() const;

  World& world_;
  const int rank_;
  const Events events_;
  const std::unique_ptr<Copies> copies_;  // destroyed after the payloads that it has given

  std::mutex mutex_;
  std::condition_variable changed_;
  bool dropped_ = false, woken_ = false, asleep_ = false, moved_ = false;

  uint64_t registered_ = 0;
  std::map<uint64_t, Entry> entries_;  ///< by the number of the binding
  std::map<Stream, Outbox> outboxes_;
  std::map<Stream, Inbox> inboxes_;
  std::set<Stream> to_begin_;           ///< outboxes with orders
  std::set<Stream> to_deliver_;         ///< inboxes in which a message may be carried out
  std::map<Stream, uint64_t> to_tell_;  ///< turns that have been carried out, for the answer
  std::deque<Leaving> leaving_;
  std::deque<Arriving> arriving_;
  uint64_t copies_out_ = 0, copies_in_ = 0;  ///< begun
  uint64_t bytes_on_the_way_ = 0;

  uint64_t notes_ = 0, notes_left_ = 0, notes_flushing_ = 0;  ///< "done" messages: sent; gone; in a flush
  std::optional<net::UcxLink::Flush> flush_;
  std::optional<Clock::time_point> until_;
  std::unique_ptr<net::WorldLink> link_;  // destroyed before the members that its events use
};

}  // namespace chorale::remote
