/// \file
/// The GPU that is current in a thread, where the library was built with CUDA.
#pragma once

namespace chorale::c {

/// Makes GPU `device` the current one until the end of the scope; below 0 it leaves what is current.
class CurrentDevice {
 public:
  /// \throws UsageError if there is no such GPU; without CUDA it does nothing, as there is no such backend
  explicit CurrentDevice(int device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  [[maybe_unused]] int before_ = -1;
};

}  // namespace chorale::c
