/// \file
/// This file implements port channels: blocks push descriptors into a ring, and a proxy moves the data and
/// posts the signals.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "../interpreter/image.hpp"
#include "chorale/device/deadline.hpp"
#include "queue_thread.hpp"
#include "scheduler.hpp"

namespace chorale {
enum class Action : uint32_t;
}

namespace chorale::cpu {

class Courier;
class Machine;
struct Run;

/// One request to the proxy, for one channel.
struct Trigger {
  const Run* run = nullptr;
  Action action{};
  uint32_t channel = 0;
  image::Place src, dst;
  image::Range range;  ///< of both operands
};

/// A ring of triggers. Any number of blocks push and one proxy pops. A block that finds it full waits.
class Fifo {
 public:
  static constexpr uint64_t slots = 512;

  explicit Fifo(Scheduler& scheduler);

  Stop push(const Group& group, const Deadline& deadline, const Trigger& trigger);

  /// Takes the next trigger; returns false if there is none. Called by the proxy, which must end() each one.
  bool pop(Trigger& trigger);
  void end();
  bool ready() const;

  /// Forgets everything, once all blocks have ended in a stopped world.
  void drop();

 private:
  struct alignas(64) Slot {
    uint64_t turn = 0;  ///< the ticket plus one, once the trigger is written
    Trigger trigger;
  };

  Scheduler& scheduler_;
  std::vector<Slot> ring_;
  alignas(128) uint64_t head_ = 0;  ///< tickets given
  alignas(128) uint64_t tail_ = 0;  ///< triggers popped
  std::atomic<int> unfinished_{0};
};

/// A rank's proxy is a thread that sleeps between runs. Under a seed it is a fiber beside the blocks.
class Proxy {
 public:
  /// \param courier  the courier to other hosts, which the proxy drives; null: there are none
  explicit Proxy(Scheduler& scheduler, Courier* courier = nullptr);

  Fifo& fifo() { return fifo_; }

  /// Called before and after a launch. After end() everything that was pushed is done or, if the world has
  /// stopped before or during end(), dropped.
  /// \return that stop
  void begin();
  Stop end(bool stopped, const Deadline& deadline);

  /// Runs as the body of the fiber until `blocks_left` is 0 and the ring is empty.
  void run_fiber(BlockHost& host, const std::atomic<int>& blocks_left);

 private:
  bool take();
  void handle(const Trigger& trigger, const Group& group);
  void send_part();
  char* room_for(const Run& run);

  Fifo fifo_;
  Courier* const courier_;
  std::optional<Trigger> unsent_;  ///< the rest of a transfer to another host
  std::vector<char> room_;
  std::optional<QueueThread> thread_;  ///< none under a seed; last, since it uses the others
};

}  // namespace chorale::cpu
