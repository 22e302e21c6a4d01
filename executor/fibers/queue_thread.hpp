/// \file
/// A QueueThread serves the entries that blocks push into a queue. It works during launches and sleeps
/// between them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "executor/system/fork.hpp"

namespace chorale::fibers {

class QueueThread {
 public:
  /// Holds further functions for a queue whose work also comes from another source and may outlast take().
  struct Elsewhere {
    std::function<bool()> settled;  ///< returns true if all work that was taken is done
    /// Replaces the sleep between launches; lasts until there may be work, or until wake().
    std::function<void()> rest;
    std::function<void()> wake;  ///< ends rest(); any thread may call it
  };

  /// \param what names the thread in the error
  /// \param looks the number of checks of an empty queue before the thread sleeps briefly
  /// \param take carries out the next entry of the queue; returns false if there is none
  /// \param drop drops all entries of the queue
  /// \throws RunError resources if no thread can be made
  QueueThread(const char* what, unsigned looks, std::function<bool()> take, std::function<void()> drop,
              Elsewhere elsewhere = {});
  ~QueueThread();
  QueueThread(const QueueThread&) = delete;
  QueueThread& operator=(const QueueThread&) = delete;

  /// Call begin() before a launch and end() after it. When end() returns, the queue is served or, after a
  /// stop, dropped.
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
  const system::Origin origin_;
  std::thread thread_;
};

}  // namespace chorale::fibers
