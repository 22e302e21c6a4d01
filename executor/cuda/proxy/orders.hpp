/// \file
/// Kernels send orders to a host thread through a ring in host memory.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <utility>

#include "chorale/device/atomics.hpp"
#include "chorale/error.hpp"
#include "executor/cuda/device/device_memory.hpp"
#include "executor/cuda/device/error.hpp"
#include "executor/cuda/device/host_words.hpp"
#include "executor/system/thread.hpp"

namespace chorale::cuda {

/// Passes orders of type `Order` through a ring. The member `turn` of an Order is written last and equals its
/// ticket plus one. Any number of blocks push, and one thread takes.
template <class Order>
class Orders {
 public:
  static constexpr uint64_t slots = 1024;  ///< a power of two

  /// \param take called by the thread for each order, with the lock held
  /// \param failed gets the exception of `take` or `also`
  /// \param also called by the thread again and again, with the lock held; returns false if there was nothing
  /// to do
  Orders(int device, std::function<void(const Order&)> take, std::function<void(const RunError&)> failed,
         std::function<bool()> also = {})
      : device_(device),
        take_(std::move(take)),
        failed_(std::move(failed)),
        also_(std::move(also)),
        ring_(slots),
        tail_(1),
        head_(sizeof(uint64_t), "the counter of a ring of orders") {}
  ~Orders() { stop(); }
  Orders(const Orders&) = delete;

  /// Call start() when everything that `take` uses exists, and stop() before any of it is destroyed.
  void start() {
    thread_ = system::start_thread("a proxy", [this] { serve(); });
  }
  void stop() {
    quit_ = true;
    if (thread_.joinable()) thread_.join();
  }

  // Return the ring and its counters as kernels see them.
  Order* ring() const { return ring_.device(); }
  uint64_t* head() const { return reinterpret_cast<uint64_t*>(head_.data()); }
  const uint64_t* tail() const { return tail_.device(); }

  std::mutex& lock() const { return mutex_; }

  /// Takes the orders that have already arrived. Call it with the lock held.
  void take_all() {
    while (next_is_there()) take_one();
  }

  /// Drops the orders of kernels that have stopped; none may run. Call it with the lock held.
  void drop() {
    // Kernels have ended, so a ticket's slot has been written, or never will be.
    check(cudaMemcpy(&taken_, head_.data(), sizeof taken_, cudaMemcpyDeviceToHost),
          "reading a ring of orders");
    for (Order& slot : std::span(ring_.host(), slots)) store_relaxed(&slot.turn, uint64_t(0));
    store_release(tail_.host(), taken_);
  }

 private:
  void serve() {
    // The thread keeps the device current. Switching back would make a context on the first GPU, which may be
    // a peer's.
    check(cudaSetDevice(device_), "selecting the GPU of a ring of orders");
    using Clock = std::chrono::steady_clock;
    Clock::time_point busy = Clock::now();
    while (!quit_.load(std::memory_order_relaxed)) {
      bool worked = false;
      {
        const std::lock_guard lock(mutex_);
        if (next_is_there()) {
          take_one();
          worked = true;
        }
        if (also_) worked |= guarded(also_);
      }
      // Kernels push in bursts, so poll closely for a while, then yield the core to others.
      const Clock::time_point now = Clock::now();
      if (worked) busy = now;
      if (now - busy > std::chrono::milliseconds(1))
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  void take_one() {
    const Order order = ring_[taken_ % slots];
    store_release(tail_.host(), ++taken_);
    guarded([&] { return take_(order), true; });
  }

  template <class F>
  bool guarded(const F& f) {
    try {
      return f();
    } catch (const RunError& failed) {
      failed_(failed);
      return false;
    }
  }

  bool next_is_there() const { return load_acquire(&ring_[taken_ % slots].turn) == taken_ + 1; }

  int device_;
  std::function<void(const Order&)> take_;
  std::function<void(const RunError&)> failed_;
  std::function<bool()> also_;
  HostArray<Order> ring_;
  HostArray<uint64_t> tail_;
  DeviceMemory head_;
  uint64_t taken_ = 0;
  mutable std::mutex mutex_;  ///< held by the ring's reader
  std::atomic<bool> quit_{false};
  std::thread thread_;
};

}  // namespace chorale::cuda
