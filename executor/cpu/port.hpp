/// \file
/// This file implements port channels. Blocks push descriptors into a ring; a proxy moves the data and posts
/// the signals.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "chorale/device/deadline.hpp"
#include "chorale/device/group.hpp"
#include "executor/fibers/queue_thread.hpp"
#include "executor/fibers/scheduler.hpp"

namespace chorale {
class World;

namespace remote {
class RemoteEndpoint;
}

namespace cpu {

struct Run;

/// Asks the proxy to do one thing on one channel: copy `bytes` bytes, then post the signal if `signal` is
/// set.
struct Trigger {
  Run* run = nullptr;
  uint32_t channel = 0;
  bool signal = false;
  char *from = nullptr,
       *to = nullptr;  ///< `to` is a remote::FarPlace's number if the peer is on another host
  uint64_t bytes = 0;  ///< may be 0
};

/// Queues triggers in a ring. Any number of blocks push, and one proxy pops. A block waits while the ring is
/// full.
class Fifo {
 public:
  static constexpr uint64_t slots = 512;

  explicit Fifo(fibers::Scheduler& scheduler);

  Stop push(const Group& group, const Deadline& deadline, const Trigger& trigger);

  /// Takes the next trigger; returns false if there is none. Called by the proxy, which must end() each
  /// trigger.
  bool pop(Trigger& trigger);
  void end();
  bool ready() const;

  /// Drops everything, after all blocks have ended in a stopped world.
  void drop();

 private:
  struct alignas(64) Slot {
    uint64_t turn = 0;  ///< the ticket plus one, once the trigger is written
    Trigger trigger;
  };

  fibers::Scheduler& scheduler_;
  std::vector<Slot> ring_;
  alignas(128) uint64_t head_ = 0;  ///< tickets given out
  alignas(128) uint64_t tail_ = 0;  ///< triggers popped
  std::atomic<int> unfinished_{0};
};

/// Serves a rank's port channels in a thread that sleeps between runs. With a seed it is a fiber beside the
/// blocks.
class Proxy {
 public:
  /// \param world also makes the rank's endpoint to other hosts, if this world has several; null: there are
  /// none
  explicit Proxy(fibers::Scheduler& scheduler, World* world = nullptr);
  ~Proxy();

  Fifo& fifo() { return fifo_; }
  /// Returns the endpoint, which the proxy drives. Null: all ranks are on one host.
  remote::RemoteEndpoint* endpoint() const { return endpoint_.get(); }

  /// Returns a new number for a binding that sends to other hosts. The number must be given back before the
  /// binding's Run ends.
  uint32_t add_client(Run& run);
  void remove_client(uint32_t client);

  /// Call begin() before a launch and end() after it. When end() returns, everything that was pushed is done.
  /// If the world has stopped before or during end(), it is dropped instead, and end() returns the reason.
  void begin();
  Stop end(bool stopped, const Deadline& deadline);

  /// Runs as the body of the fiber until `blocks_left` is 0 and the ring is empty.
  void run_fiber(fibers::BlockHost& host, const std::atomic<int>& blocks_left);

 private:
  bool take();
  void handle(const Trigger& trigger, const Group& group);
  void send(const Trigger& trigger);
  void done(uint32_t client, uint32_t channel);

  Fifo fifo_;
  std::mutex mutex_;
  std::vector<Run*> clients_;  ///< by number; null: the binding is gone. Guarded by mutex_
  std::unique_ptr<remote::RemoteEndpoint> endpoint_;
  std::optional<fibers::QueueThread> thread_;  ///< none with a seed; last, because it uses the other members
};

}  // namespace cpu
}  // namespace chorale
