/// \file
/// A device holds the buffers of a run, and enqueues and times its work: this host, or a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "chorale/world.hpp"

namespace chorale::tools {

/// Work that was captured once and can be launched many times.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void launch() = 0;
};

/// One rank's device. Its calls return when they are done; only the work of `enqueue` arguments may go on.
class Device {
 public:
  /// Makes the bytes [offset, offset + bytes) of a buffer.
  using Make = std::function<void(std::byte* piece, uint64_t offset, uint64_t bytes)>;
  /// Looks at the bytes [offset, offset + bytes) of a buffer.
  using Look = std::function<void(const std::byte* piece, uint64_t offset, uint64_t bytes)>;

  virtual ~Device() = default;

  /// Allocates memory of this device, which is freed with it.
  virtual std::byte* allocate(uint64_t bytes) = 0;
  virtual void set(std::byte* to, int value, uint64_t bytes) = 0;
  /// Fills a buffer, or reads one back, in pieces of whole 64 bytes. Several threads share many pieces.
  virtual void fill(std::byte* to, uint64_t bytes, const Make& make) = 0;
  virtual void look(const std::byte* from, uint64_t bytes, const Look& look) = 0;

  /// Returns the stream for Executor::execute().
  virtual void* stream() = 0;
  /// Enqueues a copy on the stream, from this device's memory to this device's.
  virtual void copy(std::byte* to, const std::byte* from, uint64_t bytes) = 0;
  /// Waits for the stream, as long as the world lives and its timeout allows.
  /// \throws RunError
  virtual void finish(World&) = 0;
  /// Returns the microseconds from before the first to after the last work that `enqueue` puts on the stream.
  /// \param wait  returns when all of it is done
  virtual double time_us(const std::function<void()>& enqueue, const std::function<void()>& wait) = 0;
  /// Captures the work that `enqueue` puts on the stream; returns null if the device has no graphs.
  virtual std::unique_ptr<Graph> capture(const std::function<void()>& enqueue) = 0;
};

/// Makes the device of a rank, the GPU number rank % GPUs or the host. It becomes the calling thread's
/// current device.
/// \param backend  "cpu" or "cuda"
std::unique_ptr<Device> make_device(const std::string& backend, const World&);

/// Calls work(thread, first, bytes) for the pieces of `bytes`, from `threads` threads. If one throws, so does
/// the call.
void in_pieces(uint64_t bytes, uint64_t piece, unsigned threads,
               const std::function<void(unsigned thread, uint64_t first, uint64_t bytes)>& work);

/// Returns the number of threads for the pieces of one of `ranks` ranks that share this machine.
unsigned piece_threads(int ranks);

/// Makes the device of make_device("cuda").
/// \throws Failure if this chorale was built without CUDA
std::unique_ptr<Device> make_cuda_device(const World&);

}  // namespace chorale::tools
