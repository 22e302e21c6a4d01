/// \file
/// Where the buffers of a run are, and how its work is enqueued and timed there: this host, or a GPU.
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

/// One rank's device. Its calls return once they are done, but for what `enqueue` arguments do.
class Device {
 public:
  /// Makes the bytes [offset, offset + bytes) of a buffer.
  using Make = std::function<void(std::byte* piece, uint64_t offset, uint64_t bytes)>;
  /// Looks at the bytes [offset, offset + bytes) of a buffer.
  using Look = std::function<void(const std::byte* piece, uint64_t offset, uint64_t bytes)>;

  virtual ~Device() = default;

  /// Memory of this device, freed with it.
  virtual std::byte* allocate(uint64_t bytes) = 0;
  virtual void set(std::byte* to, int value, uint64_t bytes) = 0;
  /// Fills a buffer, or reads one back, in pieces of whole 64 bytes: from several threads at once where there
  /// are many.
  virtual void fill(std::byte* to, uint64_t bytes, const Make& make) = 0;
  virtual void look(const std::byte* from, uint64_t bytes, const Look& look) = 0;

  /// For Executor::execute().
  virtual void* stream() = 0;
  /// Enqueues a copy on the stream, from this device's memory to this device's.
  virtual void copy(std::byte* to, const std::byte* from, uint64_t bytes) = 0;
  /// Waits for the stream, as long as the world lives and its timeout allows. \throws RunError
  virtual void finish(World&) = 0;
  /// Microseconds from before the first to after the last thing that `enqueue` puts on the stream.
  /// \param wait  returns when all of it is done
  virtual double time_us(const std::function<void()>& enqueue, const std::function<void()>& wait) = 0;
  /// Captures what `enqueue` puts on the stream; null where there are no graphs.
  virtual std::unique_ptr<Graph> capture(const std::function<void()>& enqueue) = 0;
};

/// The device of a rank, which becomes the calling thread's current one: GPU number rank % GPUs, or the host.
/// \param backend  "cpu" or "cuda"
std::unique_ptr<Device> make_device(const std::string& backend, const World&);

/// Calls work(first, bytes) for the pieces of `bytes`, from `threads` threads; an exception of one is thrown.
void in_pieces(uint64_t bytes, uint64_t piece, unsigned threads,
               const std::function<void(unsigned thread, uint64_t first, uint64_t bytes)>& work);

/// Threads for the pieces of one of `ranks` that share this machine.
unsigned piece_threads(int ranks);

/// make_device("cuda"). \throws Failure if this chorale was built without CUDA
std::unique_ptr<Device> make_cuda_device(const World&);

}  // namespace chorale::tools
