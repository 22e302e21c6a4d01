/// \file
/// These tell whether the processes of peers live.
#pragma once

#include <chrono>
#include <vector>

#include "control.hpp"

namespace chorale::world {

/// Returns the process that calls.
/// \throws RunError if it may open no file to look
Process this_process();

/// Returns false for a process that has ended, even if nobody has waited for it yet. A process that cannot be
/// looked at counts as alive.
/// \param process  a process of this one's namespace
bool is_alive(const Process& process);

/// Watches the processes of all ranks, without a thread.
class Watch {
 public:
  Watch() = default;
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// Watches one more process.
  /// \throws RunError resources if no more files may be open
  void add(int rank, const Process& process);

  /// Returns the ranks whose process has ended.
  std::vector<int> dead() const;

  /// Waits until each process that has begun to end has ended, so that dead() names its rank. Processes that
  /// live are not waited for. A process that is killed loses its files before it has ended: seconds before,
  /// when the machine is busy and the process had much memory.
  /// \param limit  the time after which it returns in any case
  void wait_for_ending(std::chrono::nanoseconds limit) const;

 private:
  struct Watched {
    int rank;
    Process process;
    int pidfd;  ///< -1: the kernel has none to give, look into /proc instead

    /// Waits for at most `patience`, and returns whether it has ended.
    bool has_ended(std::chrono::milliseconds patience = {}) const;
  };
  std::vector<Watched> watched_;
};

}  // namespace chorale::world
