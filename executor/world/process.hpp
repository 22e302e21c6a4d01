/// \file
/// These functions tell whether the processes of peers are alive.
#pragma once

#include <chrono>
#include <vector>

#include "control.hpp"

namespace chorale::world {

/// Returns the calling process.
/// \throws RunError if it cannot open a file in /proc
Process this_process();

/// Returns false for a process that has ended, even if its parent has not waited for it yet. A process whose
/// state cannot be read counts as alive.
/// \param process  a process in the namespace of this one
bool is_alive(const Process& process);

/// Watches the processes of all ranks. It needs no thread.
class Watch {
 public:
  Watch() = default;
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// Adds a process to watch.
  /// \throws RunError resources if this process cannot open more files
  void add(int rank, const Process& process);

  /// Returns the ranks whose processes have ended.
  std::vector<int> dead() const;

  /// Waits until each process that has begun to end has ended, so that dead() names its rank. It does not
  /// wait for other processes. A killed process loses its files before it has ended. On a busy machine, a
  /// process with much memory may lose them seconds before.
  /// \param limit  the longest time to wait
  void wait_for_ending(std::chrono::nanoseconds limit) const;

 private:
  struct Watched {
    int rank;
    Process process;
    int pidfd;  ///< -1: the kernel gave none, so /proc is read instead

    /// Waits for at most `patience`, and returns whether the process has ended.
    bool has_ended(std::chrono::milliseconds patience = {}) const;
  };
  std::vector<Watched> watched_;
};

}  // namespace chorale::world
