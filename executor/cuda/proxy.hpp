/// \file
/// The thread that serves a rank's port channels: it takes what blocks push and has the copy engine do it.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "device_memory.hpp"
#include "host_words.hpp"
#include "tape.hpp"

namespace chorale::cuda {

class Proxy {
 public:
  static constexpr uint64_t slots = 1024;

  explicit Proxy(int device);
  ~Proxy();

  /// A binding that uses the proxy. Registered while it lives.
  class Client {
   public:
    /// \param signals_at_peer  by channel; null: nobody can wait there
    /// \param completed        by channel, in device memory
    Client(Proxy& proxy, std::vector<Signal*> signals_at_peer, Signal* completed);
    ~Client();

    PortFifo fifo() const;

   private:
    friend class Proxy;
    Proxy& proxy_;
    uint32_t id_ = 0;
    std::vector<Signal*> signals_at_peer_;
    Signal* completed_;
    // Only the proxy writes these words, so it knows what they hold.
    std::vector<uint64_t> posted_, done_;
  };

  /// Forgets what was pushed by blocks that have stopped; none may run.
  void drop();

  /// "" or why copies no longer work.
  std::string error() const;

 private:
  void serve();
  void handle(const PortTrigger& trigger);

  int device_;
  HostArray<PortTrigger> ring_;
  HostArray<uint64_t> tail_;
  DeviceMemory head_;
  cudaStream_t stream_ = nullptr;
  uint64_t taken_ = 0;

  mutable std::mutex mutex_;  ///< of clients_, error_ and the ring's reader
  std::vector<Client*> clients_;
  std::string error_;
  std::atomic<bool> quit_{false};
  std::thread thread_;
};

}  // namespace chorale::cuda
