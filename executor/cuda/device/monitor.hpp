/// \file
/// The Monitor is a thread that notices when a kernel has stopped or a peer has died, while the application
/// is busy elsewhere.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "chorale/device/group.hpp"
#include "chorale/world.hpp"

namespace chorale::cuda {

/// Represents an object whose kernels leave records when they stop.
class Watched {
 public:
  virtual ~Watched() = default;
  /// Returns why blocks had to stop (none if none had), and reports the wait of each. Any thread may call it.
  virtual Stop stopped(std::string& report) const = 0;
};

/// Stops the world, with a message that names the place, when a wait in a kernel has reached its deadline.
/// Kernels only leave a record. It also checks for dead peers, so that survivors need not wait for a
/// deadline.
class Monitor {
 public:
  explicit Monitor(World& world);
  ~Monitor();

  void add(const Watched* watched);
  void remove(const Watched* watched);
  void forget();  ///< removes all objects

  /// Checks at once.
  void look();

  /// Returns the state of this rank's blocks when they had to stop; "" if none had to.
  std::string report() const;

 private:
  void watch();

  World& world_;
  mutable std::mutex mutex_;
  std::vector<const Watched*> watched_;
  std::atomic<bool> quit_{false};
  std::thread thread_;
};

}  // namespace chorale::cuda
