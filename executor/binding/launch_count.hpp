#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "chorale/world.hpp"
#include "executor/world/control.hpp"

namespace chorale {

/// Counts this rank's launches of one executor, so that a rank that binds can detect a deadlock.
///
/// A rank that binds a call waits for all other ranks to bind it too. If another rank had already bound the
/// call, it has launched it instead, and its launch waits for the rank that binds. The count shows this case.
/// Ranks make the same calls in the same order, so normally a rank that binds has made as many launches as
/// all others.
///
/// The rank also publishes a hash of its last call, so that an error can report that ranks have launched
/// different calls.
///
/// This costs two stores per launch, to memory that other ranks read only while they wait.
class LaunchCount {
 public:
  explicit LaunchCount(World& world);

  /// Returns a number that no executor of this rank has used. Ranks use the largest number that any of them
  /// proposes.
  uint32_t proposal() const;
  void number(uint32_t executor);
  bool numbered() const { return executor_ != 0; }

  /// Counts a launch. Launches into a graph do not count, because the host does not see when they run.
  /// \param call  a hash of the values that must be the same on all ranks
  void add(uint64_t call = 0) { publish(++count_, call); }
  void capture() { captured_ = true; }
  uint32_t count() const { return count_; }
  bool captured() const { return captured_; }  ///< whether there are launches that it has not counted

  void restart();  ///< restarts from 0; call it after a reset of the world

  /// Returns a sentence about a rank that is ahead of this one; "" if there is none.
  std::string ahead() const;

 private:
  void publish(uint32_t count, uint64_t call);
  world::Launched launched(uint32_t count) const;

  World& world_;
  std::atomic<uint64_t>& mine_;
  std::atomic<uint64_t>& call_;
  uint32_t executor_ = 0;  ///< 0: not numbered
  uint32_t count_ = 0;
  bool captured_ = false;
};

}  // namespace chorale
