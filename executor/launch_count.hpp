/// \file
/// How many calls each rank of an executor has launched, where the others can see it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "chorale/world.hpp"
#include "world/control.hpp"

namespace chorale {

/// A rank that binds waits for all others to bind too. One that has launched the same call, because it had
/// bound it before, will not come, and its launch waits for the rank that binds. The count tells: ranks make
/// the same calls in the same order, so a rank that binds has seen as many launches as all others.
///
/// It also says which call that was, so that ranks that have launched different ones are told so.
///
/// Costs two stores a launch, to memory that others only read while they wait.
class LaunchCount {
 public:
  explicit LaunchCount(World& world);

  /// What no executor of this rank has been numbered with. Ranks agree on the largest that one of them
  /// proposes.
  uint32_t proposal() const;
  void number(uint32_t executor);
  bool numbered() const { return executor_ != 0; }

  /// One more launch. Launches into a graph do not count, since nobody sees when they run.
  /// \param call  a hash of what is the same on all ranks
  void add(uint64_t call = 0) { publish(++count_, call); }
  void capture() { captured_ = true; }
  uint32_t count() const { return count_; }
  bool captured() const { return captured_; }  ///< there are launches that it does not know of

  void restart();  ///< the world was reset

  /// A sentence about a rank that is ahead of this one; "" if none is.
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
