/// \file
/// What the fault cases need of a backend. A program has one: cpu/device.cpp, or cuda/device.cpp.
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
  virtual std::string why_not() const = 0;  ///< why nothing can run here; "": it can
  virtual int ranks() const = 0;            ///< of a case that says nothing else: 2 or 4

  /// How long ranks wait for each other on the host where their blocks wait for `deadline`. Longer where the
  /// two are not the same and the host's part of a first call may take its time.
  virtual std::chrono::nanoseconds meeting_deadline(std::chrono::nanoseconds deadline) const = 0;

  /// How many launches there are to be in a row where a case wants very many.
  virtual int many() const = 0;

  /// The calling thread is `rank` from now on.
  virtual void use(int rank) = 0;

  virtual std::shared_ptr<void> make_stream() = 0;
  virtual void wait(void* stream) = 0;  ///< until what was enqueued has ended, well or not
  virtual std::shared_ptr<void> allocate(uint64_t bytes) = 0;

  /// After what was enqueued on `stream` before. Host memory may be changed once it returns.
  virtual void copy(void* to, const void* from, uint64_t bytes, void* stream) = 0;

  /// Memory of the device that nobody has; 0 if there is none but the host's.
  virtual uint64_t free_bytes() = 0;
};

Device& device();

}  // namespace chorale::test
