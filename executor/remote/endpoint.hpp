/// \file
/// The RemoteEndpoint serves port channels between hosts. It sends the requests of one rank's proxy to ranks
/// of other hosts, and carries out their requests.
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

#include "chorale/device/signal.hpp"
#include "chorale/world.hpp"
#include "copies.hpp"
#include "executor/lowering/far_place.hpp"
#include "executor/ucx/world_link.hpp"
#include "message.hpp"

namespace chorale::remote {

/// A transfer is cut into pieces, with one message per piece. The sender copies each piece into host memory
/// and sends it. The receiver copies each piece into its memory, sets the signal after the last piece, and
/// answers that it is done. Only then is the transfer done at the sender.
///
/// Messages of one rank to another for one binding form a stream. They are carried out in the order in which
/// they were sent. A message of one stream never waits for a message of another stream.
///
/// A transfer may arrive before the receiver's launch, as it may within a host. It waits in the receiver's
/// host memory until the receiver knows where the buffer is. That is when the binding is registered and, if
/// its runs name input and output, when the run has begun.
///
/// A backend with a launching thread and a thread that serves its proxy makes these calls:
///
///     to bind a plan, all ranks   connect(), then register_binding()
///     before a launch             begin_run(), if runs name input and output
///     during it, the proxy        send() for each request to another host, and work() repeatedly
///     at the end of it            start_clock(); then the proxy calls settled() between its calls of work()
///                                 until that returns true, if the launch waits for its orders
///     after it                    end_run(), if there was a begin_run()
///     between launches, the proxy work() now and then, or rest() instead; wake() ends a rest()
///     after a stop                drop(), when no block runs
///     after a reset               nothing, because the next connect() makes a new link
///     when a binding ends         unregister_binding()
///
/// Any thread may call any function. The functions take the endpoint's lock and hold it during callbacks, so
/// callbacks must not call the endpoint. If a thread holds another lock when it calls work(), it also holds
/// that lock in callbacks.
class RemoteEndpoint {
 public:
  struct Region {
    char* base = nullptr;
    uint64_t bytes = 0;
  };

  /// Describes the memory of one binding on this rank that peers of other hosts may write to.
  struct Memory {
    std::array<Region, 4> buffers;  ///< by BufferKind; the last is for packets, lowering::packet_kind
    Signal* signals = nullptr;      ///< in host memory; only peers set them
    uint32_t n_signals = 0;
    bool runs_name_buffers = false;  ///< begin_run() names input and output, and `buffers` does not
  };

  /// Represents a request of a block to its proxy to copy `bytes` bytes and then set the signal.
  struct Order {
    uint32_t client = 0, channel = 0;  ///< the source of the request; `done` gets both
    int peer = 0;
    uint64_t binding = 0;        ///< the result of register_binding()
    uint64_t run = 0;            ///< the number of this rank's run; 0 if runs do not name buffers
    const char* from = nullptr;  ///< the data must not change until the order is done
    FarPlace to;
    uint64_t bytes = 0;           ///< may be 0
    uint32_t signal = no_signal;  ///< the number of the peer's signal to set after the data
    uint64_t posted = 0;          ///< the value to set it to
  };
  static constexpr uint32_t no_signal = Message::no_signal;

  /// Describes one end of a channel to another host, as a proxy serves it.
  struct FarEnd {
    int peer = -1;                ///< -1: the channel does not lead to another host
    uint32_t signal = no_signal;  ///< the number of that rank's signal; no_signal: no block waits for it
    uint64_t posted = 0;          ///< the value to which the proxy last set the signal

    explicit operator bool() const { return peer >= 0; }

    /// Returns the order for a block's request, and counts its signal. The caller adds client, channel,
    /// binding and run.
    /// \param to where the program says that the data goes; a FarPlace, if there is data
    Order order(const void* from, const void* to, uint64_t bytes, bool with_signal);
  };

  struct Events {
    /// The endpoint calls this when an order is done, so that its data and its signal are at the peer.
    /// work(), rest() and the destructor call it once per order, except for orders of a binding that is
    /// unregistered.
    std::function<void(uint32_t client, uint32_t channel)> done;
    /// The endpoint calls this when something was carried out here or at a peer, so that launches make
    /// progress. work() and rest() call it. It may be empty.
    std::function<void()> moved;
  };

  /// \param copies  access to the memory of this rank
  RemoteEndpoint(World& world, std::unique_ptr<Copies> copies, Events events);

  /// Sends pending messages for a second at most. Then it says goodbye, so that no peer takes this rank for
  /// dead, and waits for an answer for a second at most. No other thread may use the endpoint at that time.
  ~RemoteEndpoint();
  RemoteEndpoint(const RemoteEndpoint&) = delete;
  RemoteEndpoint& operator=(const RemoteEndpoint&) = delete;

  /// Makes the link to the other hosts, if there is none since the last reset; collective.
  /// \throws RunError, on all ranks, if one of them cannot make the link
  void connect();

  /// Registers a binding. All ranks register the same bindings in the same order. Messages that peers have
  /// already sent to it are then carried out.
  /// \param peers  the ranks of other hosts that it connects with this rank
  /// \return its number, which is the same on all ranks and is never reused
  uint64_t register_binding(const Memory& memory, const std::vector<int>& peers);

  /// Unregisters a binding. Peers no longer write to its memory, and `done` is not called for its orders.
  /// Orders that are not sent yet, such as a last signal, are still sent.
  void unregister_binding(uint64_t binding);

  /// Names input and output in a run of a binding, until end_run() or the next begin_run(). Runs are numbered
  /// from 1 on all ranks; each round of a message is a run. A message for a run that has not begun waits, and
  /// so do all later messages of its stream. A message that writes to input or output after the run has ended
  /// stops the world. Messages may write scratch, packets and signals at any time.
  void begin_run(uint64_t binding, uint64_t run, const Region& input, const Region& output);
  void end_run(uint64_t binding);

  /// Queues an order. There is no limit to the number of orders. At most 64 MiB of a rank are in flight at a
  /// time, plus one piece of each stream that has nothing in flight. The rest waits in the queue.
  void send(const Order& order);

  /// Makes progress: it sends, receives, carries out messages and calls the callbacks. Returns false if there
  /// is nothing to do now. A failure stops the world and is not thrown.
  bool work();

  /// Starts the clock of settled(). The clock restarts whenever there is progress. begin_run() stops it.
  void start_clock();

  /// Returns true if all orders are done and all answers to peers have been sent, or if the world has
  /// stopped. If the clock reaches the world's timeout, it stops the world. The error then names the ranks
  /// that it waits for.
  bool settled();

  /// Returns true if nothing is in flight.
  bool idle();

  /// Calls work(). If there is nothing to do, it sleeps until a message arrives or wake() is called, for 100
  /// ms at most. If there is no link yet, it sleeps until connect() has made one or wake() is called.
  void rest();
  void wake();

  /// Drops all messages after a stop. The endpoint does nothing more until the next connect().
  /// \throws RunError if a copy has failed
  void drop();

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;
  using Stream = std::pair<uint64_t, int>;  ///< a binding, and the other rank

  struct Entry {
    Memory memory;
    uint64_t run = 0;  ///< the number of the last run that was begun
    bool running = false;
  };
  struct Sent {
    uint64_t turn, bytes;
    std::optional<std::pair<uint32_t, uint32_t>> done;  ///< client and channel; none: not the last piece of
                                                        ///< its order
  };
  struct Outbox {
    std::deque<Order> orders;
    uint64_t begun = 0;  ///< the bytes of the first order that have been begun
    uint64_t last_turn = 0;
    std::deque<Sent> sent;  ///< messages that the peer has not carried out yet
    bool gone = false;      ///< its binding is no longer registered
    bool empty() const { return orders.empty() && sent.empty(); }
  };
  struct Held {
    Message message;
    ucx::Payload payload;
  };
  struct Inbox {
    uint64_t begun = 0;                ///< the number of messages begun
    std::map<uint64_t, Held> waiting;  ///< by turn
  };
  /// Represents a piece that is being copied out of this rank's memory.
  struct Leaving {
    uint64_t copy;  ///< the copy's number, counted from 1
    int peer;
    Held held;
  };
  /// Represents a message whose data is being copied into this rank's memory. When the copy has ended, the
  /// message is carried out.
  struct Arriving {
    uint64_t copy = 0;  ///< the copy's number; 0: there is no data
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

  void come(int from, std::span<const std::byte> header, ucx::Payload payload);
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
  const std::unique_ptr<Copies> copies_;  // destroyed after the payloads that it has made

  std::mutex mutex_;
  std::condition_variable changed_;
  bool dropped_ = false, woken_ = false, asleep_ = false, moved_ = false;

  uint64_t registered_ = 0;
  std::map<uint64_t, Entry> entries_;  ///< by number of the binding
  std::map<Stream, Outbox> outboxes_;
  std::map<Stream, Inbox> inboxes_;
  std::set<Stream> to_begin_;           ///< outboxes with orders
  std::set<Stream> to_deliver_;         ///< inboxes in which it may be possible to carry out a message
  std::map<Stream, uint64_t> to_tell_;  ///< the last turn that was carried out, for the answer
  std::deque<Leaving> leaving_;
  std::deque<Arriving> arriving_;
  uint64_t copies_out_ = 0, copies_in_ = 0;  ///< the numbers of copies begun
  uint64_t bytes_on_the_way_ = 0;

  uint64_t notes_ = 0, notes_left_ = 0, notes_flushing_ = 0;  ///< "done" messages that were sent; that have
                                                              ///< left; that are in a flush
  std::optional<ucx::UcxLink::Flush> flush_;
  std::optional<Clock::time_point> until_;
  std::unique_ptr<ucx::WorldLink> link_;  // destroyed before the members that its events use
};

}  // namespace chorale::remote
