/// \file
/// How ranks of one host that join a world hear that one of them cannot.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chorale/error.hpp"
#include "control.hpp"

namespace chorale::world {

/// System V shared memory in which the ranks of one host say that they are joining, and why one of them
/// fails. It needs neither /dev/shm nor an open file, and no limit of the size of files applies to it: so a
/// rank that has run into any of these can still tell.
///
/// Where the system has none to give, or the ranks do not share it, a board tells nothing, and the others
/// wait for the deadline. See docs/decisions/0024-failures-while-joining-are-told.md.
class Board {
 public:
  /// Finds or makes the board of a job and says that this rank joins.
  /// \param job   the same on the ranks of this host, and unlike that of any other job of it
  /// \param near  the ranks of this host
  /// \param used_once  no earlier job can have had its name: whoever is found dead has died in this join
  Board(const std::string& job, int rank, std::vector<int> near, const Process& self, bool used_once);
  /// Says that the rank has ended its part.
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  /// \throws RunError if another rank has failed, with its reason and text
  void check() const;

  struct Dead {
    int rank;
    int pid;
  };
  /// Looks, at most every 20 ms, for a rank whose process has ended while it joined.
  std::optional<Dead> dead();

  /// Tells the others. Waits until all of them have come, for a second at most, so that they hear it too;
  /// but not for those that did not come in time.
  void fail(RunError::Reason reason, const std::string& text);

  /// The ranks have met: the job's name is free again.
  void close();

 private:
  struct Slot;
  struct Page;
  enum class Found { entered, not_ours, ended };

  Found attach(size_t bytes, uint64_t job, const Process& self);
  Found enter(uint64_t job, const Process& self, bool alone);
  const std::atomic<uint32_t>& state(int rank) const;
  bool abandoned(bool alone) const;
  bool all_came() const;
  void remove();
  void detach();

  const int rank_;
  const std::vector<int> near_;
  const bool used_once_;
  int id_ = -1;
  Page* page_ = nullptr;
  size_t slots_ = 0;
  std::chrono::steady_clock::time_point next_look_{};
};

}  // namespace chorale::world
