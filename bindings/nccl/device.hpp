#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "abi.hpp"

namespace chorale::nccl {

/// Owns memory of a device.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual void* at() const = 0;
};

/// Stands for what one communicator uses of its GPU apart from Chorale's executor, or of the CPU.
class Device {
 public:
  virtual ~Device() = default;

  /// Returns CUDA's number of the GPU; 0 for the CPU.
  virtual int number() const = 0;
  /// Returns the name of the GPU; "" for the CPU.
  virtual std::string name() const = 0;

  /// While an object of this class lives, the calling thread uses this device. It restores the thread's
  /// device afterwards.
  class Current {
   public:
    virtual ~Current() = default;
  };
  virtual std::unique_ptr<Current> make_current() = 0;

  virtual std::unique_ptr<Memory> allocate(size_t bytes) = 0;
  /// Copies memory, or enqueues the copy on `stream`.
  virtual void copy(void* to, const void* from, size_t bytes, cudaStream_t stream) = 0;

  /// Makes the streams wait for all earlier work of this object, because the calls of a communicator run in
  /// their order, whatever their streams. While a CUDA graph captures the streams, this holds within the
  /// graph.
  virtual void begin(std::span<const cudaStream_t> streams) = 0;
  /// Makes the other streams wait for the first one, where the work has been enqueued.
  virtual void end(std::span<const cudaStream_t> streams) = 0;

  /// Returns whether a CUDA graph captures the stream.
  virtual bool capturing(cudaStream_t stream) = 0;

  /// Waits on the host until all work has ended that end() has seen.
  virtual void wait() = 0;

  /// Waits on the host until all work of the device has ended, also that of graphs and of calls that failed.
  virtual void wait_for_all() = 0;

  /// Makes this the device of a thread that the library has started. Such a thread must not fall back to GPU
  /// 0, because that would make a context there.
  virtual void use_in_own_thread() = 0;
};

/// Says where communicators run, as Config::backend does.
enum class Backend { cpu, cuda };

/// Returns the device that the calling thread uses now.
/// \throws CallError without a GPU
std::unique_ptr<Device> current_device(Backend backend);

/// Returns the device with this number.
/// \throws CallError if there is none
std::unique_ptr<Device> device_of_number(Backend backend, int number);

/// Implement ncclMemAlloc() and ncclMemFree() on a GPU.
/// \throws CallError
void* allocate_for_program(size_t bytes);
void free_of_program(void* memory);

/// Returns whether this process can use a GPU.
bool has_gpu();

/// Returns the number of the GPU that the calling thread uses now; 0 without a GPU.
int current_gpu_number();

/// These make devices of a GPU. A build without CUDA has none.
std::unique_ptr<Device> current_gpu();
std::unique_ptr<Device> gpu_of_number(int number);

}  // namespace chorale::nccl
