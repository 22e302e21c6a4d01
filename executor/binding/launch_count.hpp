/// \file
/// Each rank counts the calls of an executor that it has launched, and the others can see the count.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "../world/control.hpp"
#include "chorale/world.hpp"

namespace chorale {

/// Counts this rank's launches of one executor, so that a rank that binds does not wait in vain.
///
/// A rank that binds waits for all others to bind too. A rank that had bound the call before has launched it
/// and does not come, and its launch waits for the rank that binds. The count shows this: ranks make the same
/// calls in the same order, so a rank that binds has made as many launches as all others.
///
/// The rank also publishes a hash of its last call, so that ranks that launched different calls are told so.
///
/// This costs two stores a launch, to memory that others only read while they wait.
class LaunchCount {
 public:
  explicit LaunchCount(World& world);

  /// Returns a number that no executor of this rank has used. Ranks agree on the largest number that one of
  /// them proposes.
  uint32_t proposal() const;
  void number(uint32_t executor);
  bool numbered() const { return executor_ != 0; }

  /// Counts one more launch. Launches into a graph do not count, since nobody sees when they run.
  /// \param call  a hash of what is the same on all ranks
  void add(uint64_t call = 0) { publish(++count_, call); }
  void capture() { captured_ = true; }
  uint32_t count() const { return count_; }
  bool captured() const { return captured_; }  ///< there are launches that it did not count

  void restart();  ///< starts again from 0, because the world was reset

  /// Returns a sentence about a rank that is ahead of this one; "" if none is.
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
