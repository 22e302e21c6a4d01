/// \file
/// The thread that sees, while an application is busy elsewhere, that a kernel has given up or a peer has
/// died.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "chorale/device/group.hpp"
#include "chorale/world.hpp"

namespace chorale::cuda {

/// Whose kernels leave records.
class Watched {
 public:
  virtual ~Watched() = default;
  /// Why blocks had to stop, and what each waited for; none if none had. Any thread may ask.
  virtual Stop stopped(std::string& report) const = 0;
};

/// Kernels only leave a record when a wait reaches its deadline: stopping the world, with words that name the
/// place, is the host's part. It also looks for dead peers, so that survivors need not wait for a deadline.
class Monitor {
 public:
  explicit Monitor(World& world);
  ~Monitor();

  void add(const Watched* watched);
  void remove(const Watched* watched);
  void forget();  ///< all of them

  /// Looks at once.
  void look();

  /// Where this rank's blocks stood when they had to stop; "" if none had to.
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
