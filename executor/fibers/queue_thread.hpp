/// \file
/// A QueueThread serves what blocks push into a queue. It works during launches and sleeps between them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "../system/fork.hpp"

namespace chorale::cpu {

class QueueThread {
 public:
  /// The further functions of a queue whose work also comes from elsewhere, and may last beyond take().
  struct Elsewhere {
    std::function<bool()> settled;  ///< returns true if all work that was taken is done
    std::function<void()> rest;     ///< replaces sleep between launches, until there may be work, or wake()
    std::function<void()> wake;     ///< ends rest(); any thread may call it
  };

  /// \param what   names the thread in the error
  /// \param looks  the number of looks at an empty queue before the thread sleeps a little
  /// \param take   carries out what is next in the queue; returns false if nothing is
  /// \param drop   forgets all that is in the queue
  /// \throws RunError resources if no thread can be made
  QueueThread(const char* what, unsigned looks, std::function<bool()> take, std::function<void()> drop,
              Elsewhere elsewhere = {});
  ~QueueThread();
  QueueThread(const QueueThread&) = delete;
  QueueThread& operator=(const QueueThread&) = delete;

  /// Called before and after a launch. When end() returns, the queue is served or, after a stop, dropped.
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
