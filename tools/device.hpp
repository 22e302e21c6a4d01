/// \file
/// Holds the buffers of a run on a device, this host or a GPU, and enqueues and times work there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "chorale/world.hpp"

namespace chorale::tools {

/// Holds work that was captured once and can be launched many times.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void launch() = 0;
};

/// Stands for one rank's device. Its calls return when they are done. Only work that an `enqueue` argument
/// has enqueued may still run.
class Device {
 public:
  /// Writes the bytes [offset, offset + bytes) of a buffer.
  using Make = std::function<void(std::byte* piece, uint64_t offset, uint64_t bytes)>;
  /// Reads the bytes [offset, offset + bytes) of a buffer.
  using Look = std::function<void(const std::byte* piece, uint64_t offset, uint64_t bytes)>;

  virtual ~Device() = default;

  /// Allocates memory of this device. The device frees it when it is destroyed.
  virtual std::byte* allocate(uint64_t bytes) = 0;
  virtual void set(std::byte* to, int value, uint64_t bytes) = 0;
  /// Fill a buffer, or read one back, in pieces that are multiples of 64 bytes. Several threads share the
  /// work if there are many pieces.
  virtual void fill(std::byte* to, uint64_t bytes, const Make& make) = 0;
  virtual void look(const std::byte* from, uint64_t bytes, const Look& look) = 0;

  /// Returns the stream for Executor::execute().
  virtual void* stream() = 0;
  /// Enqueues a copy within this device's memory on the stream.
  virtual void copy(std::byte* to, const std::byte* from, uint64_t bytes) = 0;
  /// Waits for the stream, as long as the world lives and its timeout allows.
  /// \throws RunError
  virtual void finish(World&) = 0;
  /// Returns the microseconds from the start of the first to the end of the last work that `enqueue` puts on
  /// the stream.
  /// \param wait  returns when all of that work is done
  virtual double time_us(const std::function<void()>& enqueue, const std::function<void()>& wait) = 0;
  /// Captures the work that `enqueue` puts on the stream; returns null if the device has no graphs.
  virtual std::unique_ptr<Graph> capture(const std::function<void()>& enqueue) = 0;
};

/// Makes the device of a rank: the GPU with the number rank % GPUs, or the host. It becomes the calling
/// thread's current device.
/// \param backend  "cpu" or "cuda"
std::unique_ptr<Device> make_device(const std::string& backend, const World&);

/// Calls work(thread, first, bytes) for the pieces of `bytes` from `threads` threads. If one call throws, so
/// does this function.
void in_pieces(uint64_t bytes, uint64_t piece, unsigned threads,
               const std::function<void(unsigned thread, uint64_t first, uint64_t bytes)>& work);

/// Returns the number of threads that move the pieces of one rank, when `ranks` ranks share this machine.
unsigned piece_threads(int ranks);

/// Makes the device that make_device("cuda") returns.
/// \throws Failure if this chorale was built without CUDA
std::unique_ptr<Device> make_cuda_device(const World&);

}  // namespace chorale::tools
