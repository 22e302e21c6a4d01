/// \file
/// The Courier serves port channels between hosts: it sends what one rank's proxy has for ranks of other
/// hosts, and carries out what they send.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "chorale/world.hpp"
#include "far_message.hpp"
#include "run.hpp"

namespace chorale::cpu {

/// A transfer goes in parts, one message each. The receiver puts each part in place, adds to the signal after
/// the last, and answers that it is done; only then is it done at the sender. Each part that is done is
/// progress of the launches at both ends, so that no deadline ends a transfer that moves. Messages of one
/// rank to another for one binding are carried out in their order, and not before the receiver has begun the
/// run that they belong to. Messages of other bindings do not wait for them.
///
/// The thread that launches makes the calls; the proxy's thread makes those under "the proxy's thread".
class Courier {
 public:
  explicit Courier(World& world);

  /// Says goodbye, so that no peer takes this end for a death. Waits for an answer for a second at most.
  ~Courier();
  Courier(const Courier&) = delete;

  /// Makes the link to the other hosts, if there has been none since the last reset. Collective.
  /// \throws RunError on all ranks if one of them cannot have the link
  void connect();

  /// Registers a binding that all ranks have made by now. It is the n-th since connect() on each of them.
  /// \param peers  the ranks of other hosts that it connects with this rank
  /// \return n
  uint64_t enrol(const std::vector<int>& peers);
  void strike(uint64_t binding);

  /// Called before and after a launch of a binding. Peers may touch its memory between the two calls.
  void begin(uint64_t binding, const Run& run);
  void end(uint64_t binding);

  /// Starts the clock of settled(), which starts anew whenever something is done.
  void start_clock();

  /// Returns true if nothing is on its way any more.
  bool idle();

  // -- The proxy's thread

  /// Returns true if more may be sent before the receivers have done some of it.
  bool has_room();
  /// Sends one part of a transfer.
  /// \param last  true for the last part of the transfer
  void send(const Trigger& part, bool last, Machine& machine);

  /// Carries out what has come. Returns false if there was nothing to do.
  bool work();

  /// Returns true if all that was sent has been done and all peers know what this rank has done, or if the
  /// world has stopped. Stops the world when the clock has run out.
  bool settled();

  /// Sleeps until something has come or wake() is called, by any thread.
  void rest();
  void wake();

  /// Forgets everything after a stop. Nothing is done any more until the next connect().
  void drop();

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;
  using Stream = std::pair<uint64_t, int>;  ///< a binding and the other rank

  struct Entry {
    Run run;  ///< the run of the launch that was begun last
    bool active = false;
  };
  struct Sent {
    uint64_t turn, bytes;
    const Run* run;
    uint32_t channel;
    bool last;  ///< the last part of a transfer
  };
  struct Outbox {
    uint64_t last_turn = 0;
    std::deque<Sent> waiting;  ///< messages that the receiver has not done yet
  };
  struct Held {
    FarMessage message;
    net::Payload payload;
  };
  struct Inbox {
    uint64_t done = 0, told = 0;       ///< turns
    std::map<uint64_t, Held> waiting;  ///< by turn
  };

  void close();
  void come(int from, std::span<const std::byte> header, net::Payload payload);
  void tell_done(const Stream& stream, uint64_t turn);
  void take_done(const Stream& stream, uint64_t turn);
  void deliver(const Stream& stream, Inbox& inbox);
  void carry_out(Entry& entry, int from, const Held& held);
  void move_on();
  bool look();
  bool idle_locked() const;
  std::string waited_for() const;

  World& world_;
  const int rank_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<net::WorldLink> link_;
  bool dropped_ = false, woken_ = false, asleep_ = false, recheck_ = false;

  uint64_t enrolled_ = 0;
  std::map<uint64_t, Entry> entries_;  ///< by the number of the binding
  std::map<Stream, Outbox> outboxes_;
  std::map<Stream, Inbox> inboxes_;
  uint64_t bytes_on_the_way_ = 0;
  uint64_t notes_ = 0, notes_left_ = 0, notes_flushing_ = 0;  ///< "done" messages: sent; gone; in a flush
  std::optional<net::UcxLink::Flush> flush_;
  std::optional<Clock::time_point> until_;
  std::vector<char> room_;
};

}  // namespace chorale::cpu
