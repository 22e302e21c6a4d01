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

/// A board is System V shared memory of the ranks of one host. Each rank marks there that it is joining, and
/// a rank that fails writes the reason. A board needs neither /dev/shm nor an open file, and no limit on file
/// sizes applies to it. So a rank that has run into one of these limits can still report it.
///
/// If the system has no such memory left, or if the ranks do not share it, a board reports nothing, and the
/// other ranks wait until the deadline. See docs/decisions/0024-failures-while-joining-are-told.md.
class Board {
 public:
  /// Finds or makes the board of a job, and marks that this rank joins.
  /// \param job   the same on the ranks of this host, and different for every other job on it
  /// \param near  the ranks of this host
  /// \param used_once  no earlier job can have had this name, so a dead rank on the board died in this join
  Board(const std::string& job, int rank, std::vector<int> near, const Process& self, bool used_once);
  /// Marks that the rank has ended its part.
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  /// Checks that no other rank has failed.
  /// \throws RunError if one has, with the reason and text of that rank
  void check() const;

  struct Dead {
    int rank;
    int pid;
  };
  /// Returns a rank whose process ended while it joined. It looks at most every 20 ms.
  std::optional<Dead> dead();

  /// Tells the others why this rank fails. It waits for a second at most until all ranks of the host are on
  /// the board, so that they all see the reason. It does not wait if the reason is a timeout.
  void fail(RunError::Reason reason, const std::string& text);

  /// Frees the job's name. Call it when all ranks have joined.
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
