/// \file
/// Port channels between hosts: what one rank's proxy sends to, and does for, ranks of other hosts.
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

/// A transfer goes in parts, one message each, whose receiver puts it in place, adds to the signal behind the
/// last, and says that it is done: only then is it done at the sender. Each part that is done is progress of
/// the launches at both ends, so that no deadline ends a transfer that moves. Messages of one rank to another
/// for one binding are carried out in their order, and not before the receiver has begun the run that they
/// belong to; those of other bindings do not wait for them.
///
/// Calls come from the thread that launches; those under "the proxy's thread" from that one.
class Courier {
 public:
  explicit Courier(World& world);

  /// Says goodbye, so that nobody takes it for a death. Waits for an answer for a second at most.
  ~Courier();
  Courier(const Courier&) = delete;

  /// Collective: the link to the other hosts, if there is none since the last reset.
  /// \throws RunError on all ranks if one of them cannot have it
  void connect();

  /// A binding that all ranks have made by now, the n-th since connect() on each of them. \return n
  /// \param peers  on other hosts, that it connects with this rank
  uint64_t enrol(const std::vector<int>& peers);
  void strike(uint64_t binding);

  /// Around a launch of a binding: peers may touch its memory from here, to there.
  void begin(uint64_t binding, const Run& run);
  void end(uint64_t binding);

  /// Starts the clock of settled(), which starts anew whenever something is done.
  void start_clock();

  /// Whether nothing is on its way any more.
  bool idle();

  // -- The proxy's thread

  /// Whether more may be sent before something has been done.
  bool has_room();
  /// \param last  of the parts that a transfer is sent in
  void send(const Trigger& part, bool last, Machine& machine);

  /// Carries out what has come. False: there was nothing to do.
  bool work();

  /// Whether all that was sent has been done, and everybody else knows what we have done; or the world has
  /// stopped, as it does here when time is over.
  bool settled();

  /// Sleeps until something has come or wake() is called, by any thread.
  void rest();
  void wake();

  /// After a stop: forgets everything. Nothing is done any more until the next connect().
  void drop();

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;
  using Stream = std::pair<uint64_t, int>;  ///< a binding and the other rank

  struct Entry {
    Run run;  ///< as of the launch that was begun last
    bool active = false;
  };
  struct Sent {
    uint64_t turn, bytes;
    const Run* run;
    uint32_t channel;
    bool last;  ///< part of a transfer
  };
  struct Outbox {
    uint64_t last_turn = 0;
    std::deque<Sent> waiting;  ///< for their being done
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
  std::map<uint64_t, Entry> entries_;  ///< of the bindings that there are
  std::map<Stream, Outbox> outboxes_;
  std::map<Stream, Inbox> inboxes_;
  uint64_t bytes_on_the_way_ = 0;
  uint64_t notes_ = 0, notes_left_ = 0, notes_flushing_ = 0;  ///< of what was done: sent; gone; in a flush
  std::optional<net::UcxLink::Flush> flush_;
  std::optional<Clock::time_point> until_;
  std::vector<char> room_;
};

}  // namespace chorale::cpu
