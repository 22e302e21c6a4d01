/// \file
/// Declares the backend's part of the fault cases. A program has one: cpu/device.cpp, or cuda/device.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace chorale::test {

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;     ///< as Config::backend
  virtual std::string why_not() const = 0;  ///< the reason why nothing can run here; "" if it can
  virtual int ranks() const = 0;            ///< the number of ranks of a case that does not name one: 2 or 4

  /// Returns how long ranks wait for each other on the host when their blocks wait for `deadline`. It is
  /// longer if the two are not the same and the host's part of a first call may take its time.
  virtual std::chrono::nanoseconds join_deadline(std::chrono::nanoseconds deadline) const = 0;

  /// Returns how many launches a case that needs very many makes in a row.
  virtual int many() const = 0;

  /// Makes the calling thread `rank` from now on.
  virtual void use(int rank) = 0;

  virtual std::shared_ptr<void> make_stream() = 0;
  virtual void wait(void* stream) = 0;  ///< returns when the enqueued work has ended or failed
  virtual std::shared_ptr<void> allocate(uint64_t bytes) = 0;

  /// Copies after all work that is on `stream`. You may change host memory once it returns.
  virtual void copy(void* to, const void* from, uint64_t bytes, void* stream) = 0;

  /// Returns the free bytes of the device's memory; 0 if the device uses the host's memory.
  virtual uint64_t free_bytes() = 0;
};

Device& device();

}  // namespace chorale::test
