/// \file
/// A thread that serves what blocks push into a queue: at work during launches, asleep between them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "../world/fork.hpp"

namespace chorale::cpu {

class QueueThread {
 public:
  /// For a queue whose work comes from elsewhere, too, and may last beyond take().
  struct Elsewhere {
    std::function<bool()> settled;  ///< whether nothing is left of what was taken
    std::function<void()> rest;  ///< in place of sleep between launches: until there may be work, or wake()
    std::function<void()> wake;  ///< from any thread
  };

  /// \param what  it is, for the error
  /// \param take  carries out what is next in the queue; false if nothing is
  /// \param drop  forgets all that is in it
  /// \param looks  at an empty queue, before it sleeps a little
  /// \throws RunError resources if there is no thread for it
  QueueThread(const char* what, unsigned looks, std::function<bool()> take, std::function<void()> drop,
              Elsewhere elsewhere = {});
  ~QueueThread();
  QueueThread(const QueueThread&) = delete;
  QueueThread& operator=(const QueueThread&) = delete;

  /// Around a launch. When end() returns the queue is empty: served, or dropped after a stop.
  void begin();
  void end(bool stopped);

 private:
  enum State : uint32_t { idle, running, draining, dropping, quitting };

  void serve();
  void pause(unsigned& looks) const;
  void ask(State);

  const unsigned looks_;
  const std::function<bool()> take_;
  const std::function<void()> drop_;
  const Elsewhere elsewhere_;
  std::atomic<uint32_t> state_{idle};
  const world::Origin origin_;
  std::thread thread_;
};

}  // namespace chorale::cpu
